"""Training runs, their figures, and what they left behind."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.columns import CleanJson
from db.enums import ArtifactKind, ErrorKind, RunStatus, StopStage
from db.models.base import NEVER_REUSE_IDS, Base, now


class RunTable(Base):
    """A training run.

    `start_token` makes two clicks on Start one run; `queue_place` orders those that wait, smallest
    first, whatever a clock says. `claimed_by` is the process that is about to start it, and
    `metric_rows` counts every row of turn metrics ever written. `parent_id` names the run whose
    adapter it started from, also when that is deleted (ids are never used again, so it refers to no
    other), and `ancestors` holds the rounds before it (`db.records.Round`) as they stood then.
    """

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("start_token"),
        Index(None, "status", "queue_place"),
        Index(None, "parent_id"),
        NEVER_REUSE_IDS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    status: Mapped[RunStatus] = mapped_column(default=RunStatus.QUEUED)
    config: Mapped[dict[str, Any]] = mapped_column(CleanJson())
    base_model: Mapped[str]
    device: Mapped[str] = mapped_column(default="")
    conversations: Mapped[int]
    turns: Mapped[int]
    start_token: Mapped[str]
    snapshot_sha256: Mapped[str] = mapped_column(default="")
    attempt: Mapped[int] = mapped_column(default=1)
    queue_place: Mapped[int] = mapped_column(default=0)
    claimed_by: Mapped[str] = mapped_column(default="")
    machine: Mapped[str] = mapped_column(default="")
    pid: Mapped[int | None]
    process_started_at: Mapped[float | None]
    heartbeat_at: Mapped[datetime | None]
    stop_requested_at: Mapped[datetime | None]
    stop_stage: Mapped[StopStage | None]
    stop_stage_at: Mapped[datetime | None]
    progress: Mapped[float] = mapped_column(default=0.0)
    message: Mapped[str] = mapped_column(default="")
    error_kind: Mapped[ErrorKind | None]
    error_text: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    queued_at: Mapped[datetime] = mapped_column(default=now)
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    notified_at: Mapped[datetime | None]
    metric_rows: Mapped[int] = mapped_column(default=0)
    parent_id: Mapped[int | None]
    ancestors: Mapped[list[dict[str, Any]]] = mapped_column(CleanJson(), default=list)


class TurnMetricTable(Base):
    """One turn's figures in one optimiser step (see `db.records.TurnMetric`).

    `number` grows with each row that is written, so that a reader can ask for what is new.
    """

    __tablename__ = "turn_metrics"
    __table_args__ = (Index(None, "run_id", "number"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    conversation: Mapped[int] = mapped_column(primary_key=True)
    turn: Mapped[int] = mapped_column(primary_key=True)
    epoch: Mapped[int]
    tokens: Mapped[int]
    response_tokens: Mapped[int]
    reward: Mapped[float | None]
    advantage: Mapped[float]
    loss_mean: Mapped[float]
    loss_sum: Mapped[float]
    ratio_mean: Mapped[float]
    clipfrac: Mapped[float]
    clipfrac_binding: Mapped[float]
    kl_mean: Mapped[float]
    logprob_mean: Mapped[float]
    kl_base: Mapped[float | None]
    number: Mapped[int] = mapped_column(default=0)


class StepMetricTable(Base):
    """One optimiser step's figures (see `db.records.StepMetric`)."""

    __tablename__ = "step_metrics"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    epoch: Mapped[int]
    loss: Mapped[float]
    grad_norm: Mapped[float | None]
    lr: Mapped[float]
    kl: Mapped[float]
    kl_base: Mapped[float | None]
    tokens_per_s: Mapped[float]
    memory_bytes: Mapped[int] = mapped_column(BigInteger())
    seconds: Mapped[float]
    attempt: Mapped[int] = mapped_column(default=1)
    cpu_percent: Mapped[float | None]
    gpu_percent: Mapped[float | None]


class ArtifactTable(Base):
    """A file or folder that a run left behind."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("run_id", "kind", "path"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    kind: Mapped[ArtifactKind]
    path: Mapped[str]
    sha256: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger())
    created_at: Mapped[datetime] = mapped_column(default=now)
