# pyright: basic
"""What collecting and evaluating need."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "collections",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("start_token", sa.Text(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("prompts", sa.Text(), nullable=False),
        sa.Column("prompt_count", sa.Integer(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("error_text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_collections_user_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("start_token", name="uq_collections_start_token"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_collections_state", "collections", ["state"])
    op.create_table(
        "collected_prompts",
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("prompt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("conversations", sa.Integer(), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name="fk_collected_prompts_collection_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "prompt", name="pk_collected_prompts"),
    )
    with op.batch_alter_table("messages", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("sampling", sa.JSON(), nullable=True))
