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
from db.enums import ArtifactKind, ErrorKind, RunStatus
from db.models.base import NEVER_REUSE_IDS, Base, now


class RunTable(Base):
    """A training run.

    `start_token` makes two clicks on Start one run; `queued_at` orders those that wait.
    """

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("start_token"),
        Index(None, "status", "queued_at"),
        NEVER_REUSE_IDS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    status: Mapped[RunStatus] = mapped_column(default=RunStatus.QUEUED)
    config: Mapped[dict[str, Any]] = mapped_column(CleanJson())
    base_model: Mapped[str]
    conversations: Mapped[int]
    turns: Mapped[int]
    start_token: Mapped[str]
    snapshot_sha256: Mapped[str] = mapped_column(default="")
    attempt: Mapped[int] = mapped_column(default=1)
    pid: Mapped[int | None]
    process_started_at: Mapped[float | None]
    heartbeat_at: Mapped[datetime | None]
    stop_requested_at: Mapped[datetime | None]
    progress: Mapped[float] = mapped_column(default=0.0)
    message: Mapped[str] = mapped_column(default="")
    error_kind: Mapped[ErrorKind | None]
    error_text: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    queued_at: Mapped[datetime] = mapped_column(default=now)
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class TurnMetricTable(Base):
    """One turn's figures in one optimiser step (see `db.records.TurnMetric`)."""

    __tablename__ = "turn_metrics"

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


class StepMetricTable(Base):
    """One optimiser step's figures (see `db.records.StepMetric`)."""

    __tablename__ = "step_metrics"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    epoch: Mapped[int]
    loss: Mapped[float]
    grad_norm: Mapped[float]
    lr: Mapped[float]
    kl: Mapped[float]
    kl_base: Mapped[float | None]
    tokens_per_s: Mapped[float]
    memory_bytes: Mapped[int] = mapped_column(BigInteger())
    seconds: Mapped[float]


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
