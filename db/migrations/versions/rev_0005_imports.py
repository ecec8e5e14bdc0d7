# pyright: basic
"""Imports that can be taken back, and conversations that share a prompt."""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
