# pyright: basic
"""Imports that can be taken back, and conversations that share a prompt."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_imports()
    with op.batch_alter_table(
        "conversations", table_kwargs={"sqlite_autoincrement": True}
    ) as batch:
        batch.add_column(sa.Column("group_key", sa.String(length=64), nullable=True))
        batch.add_column(sa.Column("import_id", sa.Integer(), nullable=True))
        batch.create_foreign_key(
            "fk_conversations_import_id", "imports", ["import_id"], ["id"], ondelete="SET NULL"
        )
        batch.create_index("ix_conversations_group_key", ["group_key"])
        batch.create_index("ix_conversations_import_id", ["import_id"])
    _create_imported_scores()


def _create_imports() -> None:
    op.create_table(
        "imports",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("error_text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_imports_user_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_imports"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_imports_state", "imports", ["state"])


def _create_imported_scores() -> None:
    op.create_table(
        "imported_scores",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("import_id", sa.Integer(), nullable=False),
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Integer(), nullable=True),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("adjudicates", sa.Boolean(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{table}.id"], name=f"fk_imported_scores_{column}", ondelete="CASCADE"
            )
            for column, table in (
                ("import_id", "imports"),
                ("conversation_id", "conversations"),
                ("message_id", "messages"),
                ("user_id", "users"),
            )
        ),
        sa.PrimaryKeyConstraint("id", name="pk_imported_scores"),
    )
    for column in ("import_id", "conversation_id", "message_id", "user_id"):
        op.create_index(f"ix_imported_scores_{column}", "imported_scores", [column])
