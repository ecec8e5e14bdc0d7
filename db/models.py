"""The tables. ORM objects stay inside `db`; what leaves it are the records of `db.records`."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    MetaData,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from db.columns import CleanJson, CleanText, UtcDateTime, enum_column
from db.enums import ArtifactKind, ErrorKind, ReviewState, Role, RunStatus, UserRole

NEVER_REUSE_IDS = {"sqlite_autoincrement": True}
"""Addresses and run folders carry ids, so the id of a deleted row must not come back."""


def now() -> datetime:
    """Return the present time (UTC)."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """Base of the tables; constraints get names by rule, so that migrations can address them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        str: CleanText(),
        datetime: UtcDateTime(),
        UserRole: enum_column(UserRole),
        Role: enum_column(Role),
        ReviewState: enum_column(ReviewState),
        RunStatus: enum_column(RunStatus),
        ErrorKind: enum_column(ErrorKind),
        ArtifactKind: enum_column(ArtifactKind),
    }


class UserTable(Base):
    """A person who scores or administers."""

    __tablename__ = "users"
    __table_args__ = (UniqueConstraint("name"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[UserRole]
    created_at: Mapped[datetime] = mapped_column(default=now)


class ConversationTable(Base):
    """A conversation; its hash covers what was said, never what people think of it."""

    __tablename__ = "conversations"
    __table_args__ = (
        Index(None, "content_hash"),
        Index(None, "archived", "id"),
        NEVER_REUSE_IDS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(default="")
    system: Mapped[str] = mapped_column(default="")
    source: Mapped[str] = mapped_column(default="")
    content_hash: Mapped[str] = mapped_column(String(64))
    archived: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class TagTable(Base):
    """One tag of one conversation."""

    __tablename__ = "conversation_tags"
    __table_args__ = (Index(None, "tag"),)

    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    tag: Mapped[str] = mapped_column(primary_key=True)


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


class MessageTable(Base):
    """One message; `position` orders those of a conversation, from 0."""

    __tablename__ = "messages"
    __table_args__ = (
        UniqueConstraint("conversation_id", "position"),
        Index(None, "run_id"),
        NEVER_REUSE_IDS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    position: Mapped[int]
    role: Mapped[Role]
    content: Mapped[str]
    tool_calls: Mapped[list[dict[str, Any]] | None] = mapped_column(CleanJson())
    tool_call_id: Mapped[str | None]
    model: Mapped[str | None]
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"))
    token_ids: Mapped[list[int] | None] = mapped_column(CleanJson())
    logprobs: Mapped[list[float] | None] = mapped_column(CleanJson())


class ScoreTable(Base):
    """What one user says of one assistant message. No row means: not scored."""

    __tablename__ = "scores"
    __table_args__ = (
        CheckConstraint("value >= -1 AND value <= 1", name="value_in_range"),
        Index(None, "user_id"),
    )

    message_id: Mapped[int] = mapped_column(
        ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    value: Mapped[float]
    note: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class OutcomeTable(Base):
    """What one user says of a conversation as a whole."""

    __tablename__ = "outcomes"
    __table_args__ = (
        CheckConstraint("value >= -1 AND value <= 1", name="value_in_range"),
        Index(None, "user_id"),
    )

    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    value: Mapped[float]
    note: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class ReviewTable(Base):
    """Where a conversation stands in one user's queue. No row means: open."""

    __tablename__ = "reviews"
    __table_args__ = (Index(None, "user_id", "state"),)

    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    state: Mapped[ReviewState]
    updated_at: Mapped[datetime] = mapped_column(default=now)


class EventTable(Base):
    """The append-only log of score changes; rows go only when what they speak of is deleted.

    `undoes_id` marks an event that took another one back. Scores that arrived with a new
    conversation are logged as not `undoable`: undo takes back what a person did by hand.
    """

    __tablename__ = "events"
    __table_args__ = (
        UniqueConstraint("undoes_id"),
        Index(None, "user_id", "id"),
        Index(None, "conversation_id", "id"),
        Index(None, "message_id"),
        NEVER_REUSE_IDS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"))
    old_value: Mapped[float | None]
    new_value: Mapped[float | None]
    old_note: Mapped[str] = mapped_column(default="")
    new_note: Mapped[str] = mapped_column(default="")
    undoable: Mapped[bool] = mapped_column(default=True)
    undoes_id: Mapped[int | None] = mapped_column(ForeignKey("events.id", ondelete="CASCADE"))
    at: Mapped[datetime] = mapped_column(default=now)


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
