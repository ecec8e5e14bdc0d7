# pyright: basic
"""What labelling by several people needs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_adjudications()
    _create_assignments()


def _create_adjudications() -> None:
    op.create_table(
        "adjudications",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("value >= -1 AND value <= 1", name="ck_adjudications_value_in_range"),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_adjudications_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_adjudications_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", name="pk_adjudications"),
    )
    op.create_index("ix_adjudications_user_id", "adjudications", ["user_id"])
    with op.batch_alter_table("events", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(
            sa.Column("adjudicates", sa.Boolean(), server_default=sa.false(), nullable=False)
        )


def _create_assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("assigned_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_assignments_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_assignments_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("conversation_id", "user_id", name="pk_assignments"),
    )
    op.create_index("ix_assignments_user_id", "assignments", ["user_id"])
