# pyright: basic
"""The tools that a conversation's assistant could call."""

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
