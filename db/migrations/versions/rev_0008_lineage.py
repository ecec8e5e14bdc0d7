# pyright: basic
"""Which run another one started from."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("runs", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("parent_id", sa.Integer(), nullable=True))
        batch.add_column(sa.Column("ancestors", sa.JSON(), server_default="[]", nullable=False))
        batch.create_index("ix_runs_parent_id", ["parent_id"])
