# pyright: basic
"""What runs that never get lost need."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _extend_runs()
    _extend_metrics()


def _extend_runs() -> None:
    with op.batch_alter_table("runs", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("device", sa.Text(), server_default="", nullable=False))
        batch.add_column(sa.Column("queue_place", sa.Integer(), server_default="0", nullable=False))
        batch.add_column(sa.Column("claimed_by", sa.Text(), server_default="", nullable=False))
        batch.add_column(sa.Column("machine", sa.Text(), server_default="", nullable=False))
        batch.add_column(sa.Column("stop_stage", sa.String(32), nullable=True))
        batch.add_column(sa.Column("stop_stage_at", sa.DateTime(timezone=True), nullable=True))
        batch.add_column(sa.Column("notified_at", sa.DateTime(timezone=True), nullable=True))
        batch.add_column(sa.Column("metric_rows", sa.Integer(), server_default="0", nullable=False))
        batch.drop_index("ix_runs_status_queued_at")
        batch.create_index("ix_runs_status_queue_place", ["status", "queue_place"])
    op.execute(
        "UPDATE runs SET queue_place = ranked.place, notified_at = ended_at FROM ("
        " SELECT id AS run, ROW_NUMBER() OVER (ORDER BY queued_at, id) AS place FROM runs"
        ") AS ranked WHERE ranked.run = runs.id"
    )
    op.execute("UPDATE runs SET stop_stage = 'asked' WHERE stop_requested_at IS NOT NULL")


def _extend_metrics() -> None:
    with op.batch_alter_table("turn_metrics") as batch:
        batch.add_column(sa.Column("number", sa.Integer(), server_default="0", nullable=False))
        batch.create_index("ix_turn_metrics_run_id_number", ["run_id", "number"])
    op.execute(
        "UPDATE turn_metrics SET number = ranked.place FROM ("
        " SELECT run_id AS run, step AS s, conversation AS c, turn AS t, ROW_NUMBER() OVER ("
        "  PARTITION BY run_id ORDER BY step, conversation, turn) AS place FROM turn_metrics"
        ") AS ranked WHERE ranked.run = turn_metrics.run_id AND ranked.s = turn_metrics.step"
        " AND ranked.c = turn_metrics.conversation AND ranked.t = turn_metrics.turn"
    )
    op.execute(
        "UPDATE runs SET metric_rows ="
        " (SELECT COUNT(*) FROM turn_metrics WHERE turn_metrics.run_id = runs.id)"
    )
    with op.batch_alter_table("step_metrics") as batch:
        batch.add_column(sa.Column("attempt", sa.Integer(), server_default="1", nullable=False))
        batch.add_column(sa.Column("cpu_percent", sa.Double(), nullable=True))
        batch.add_column(sa.Column("gpu_percent", sa.Double(), nullable=True))
