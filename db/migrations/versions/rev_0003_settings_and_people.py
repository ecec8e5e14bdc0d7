# pyright: basic
"""Settings of the project, and who may come in."""

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
