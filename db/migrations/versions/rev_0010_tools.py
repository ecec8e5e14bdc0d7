# pyright: basic
"""The tools that a conversation's assistant could call."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("conversations", sa.Column("tools", sa.JSON(), nullable=True))
