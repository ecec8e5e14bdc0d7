"""What people say of conversations and turns, and the log of what they said."""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.enums import ReviewState
from db.models.base import NEVER_REUSE_IDS, Base, now


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


class PendingNoteTable(Base):
    """A note that was written before its score; the score takes it over."""

    __tablename__ = "pending_notes"

    message_id: Mapped[int] = mapped_column(
        ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    note: Mapped[str]


class ReviewTable(Base):
    """Where a conversation stands in one user's queue, and how many of its turns they scored.

    No row means: open, and nothing scored.
    """

    __tablename__ = "reviews"
    __table_args__ = (Index(None, "user_id", "state"),)

    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    state: Mapped[ReviewState]
    scored_turns: Mapped[int] = mapped_column(default=0)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class EventTable(Base):
    """The append-only log of changes; rows go only when what they speak of is deleted.

    An event changes the score of a turn, of the whole conversation (no message), or where the
    conversation stands in the queue (`new_state`). An undo is an event that points at what it took
    back (`undoes_id`), a redo one that points at the undo; both are undone and redone in turn.
    Scores that arrived with a new conversation are logged as not `undoable`: undo takes back what
    a person did by hand. Events with one `batch` were one action. `changed_by` is who did it where
    that is not the rater. An event that `adjudicates` changed the decided score of a turn and not
    that person's own.
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
    adjudicates: Mapped[bool] = mapped_column(default=False, server_default=false())
    undoes_id: Mapped[int | None] = mapped_column(ForeignKey("events.id", ondelete="CASCADE"))
    is_undo: Mapped[bool] = mapped_column(default=False, server_default=false())
    old_state: Mapped[ReviewState | None]
    new_state: Mapped[ReviewState | None]
    batch: Mapped[str | None] = mapped_column(String(32))
    changed_by: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    at: Mapped[datetime] = mapped_column(default=now)
