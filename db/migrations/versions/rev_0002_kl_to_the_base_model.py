# pyright: basic
"""KL to the base model, per turn and per step; rows from before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("step_metrics", "turn_metrics"):
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column("kl_base", sa.Double(), nullable=True))
