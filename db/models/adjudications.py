"""What several raters come to: scores that were decided, and who was asked to score what."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, now


class AdjudicationTable(Base):
    """The score that was decided for one assistant message, whatever its raters said."""

    __tablename__ = "adjudications"
    __table_args__ = (
        CheckConstraint("value >= -1 AND value <= 1", name="value_in_range"),
        Index(None, "user_id"),
    )

    message_id: Mapped[int] = mapped_column(
        ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    value: Mapped[float]
    note: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class AssignmentTable(Base):
    """One person who was asked to score one conversation."""

    __tablename__ = "assignments"
    __table_args__ = (Index(None, "user_id"),)

    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    assigned_at: Mapped[datetime] = mapped_column(default=now)
