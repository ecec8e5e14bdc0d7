# pyright: basic
"""Undone decisions are told from redone ones: until now every reversed decision was an undo."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE events SET is_undo = true WHERE adjudicates AND undoes_id IS NOT NULL")
