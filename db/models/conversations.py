"""Conversations, their messages and tags."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ForeignKey,
    Index,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.columns import CleanJson
from db.enums import Role
from db.models.base import NEVER_REUSE_IDS, Base, now


class ConversationTable(Base):
    """A conversation; its hash covers what was said, never what people think of it.

    Conversations that share a prompt (branches of a tree, a preference pair) have one `group_key`.
    The counts repeat what messages and scores say, so that queues and tables need not count
    (`db.commands.counting` keeps them).
    """

    __tablename__ = "conversations"
    __table_args__ = (
        Index(None, "content_hash"),
        Index(None, "archived", "id"),
        Index(None, "import_id"),
        Index(None, "group_key"),
        NEVER_REUSE_IDS,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(default="")
    system: Mapped[str] = mapped_column(default="")
    source: Mapped[str] = mapped_column(default="")
    content_hash: Mapped[str] = mapped_column(String(64))
    archived: Mapped[bool] = mapped_column(default=False)
    group_key: Mapped[str | None] = mapped_column(String(64))
    import_id: Mapped[int | None] = mapped_column(ForeignKey("imports.id", ondelete="SET NULL"))
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)
    turns: Mapped[int] = mapped_column(default=0)
    scored_turns: Mapped[int] = mapped_column(default=0)
    score_count: Mapped[int] = mapped_column(default=0)
    mean_score: Mapped[float | None]
    uncertainty: Mapped[float | None]
    tools: Mapped[list[dict[str, Any]] | None] = mapped_column(CleanJson())


class TagTable(Base):
    """One tag of one conversation."""

    __tablename__ = "conversation_tags"
    __table_args__ = (Index(None, "tag"),)

    conversation_id: Mapped[int] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    tag: Mapped[str] = mapped_column(primary_key=True)


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
    sampling: Mapped[dict[str, Any] | None] = mapped_column(CleanJson())


class MessageVersionTable(Base):
    """What a scored message said before somebody edited it, and whether its scores were kept."""

    __tablename__ = "message_versions"
    __table_args__ = (Index(None, "message_id"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"))
    role: Mapped[Role]
    content: Mapped[str]
    tool_calls: Mapped[list[dict[str, Any]] | None] = mapped_column(CleanJson())
    model: Mapped[str | None]
    scores_kept: Mapped[bool]
    replaced_by: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    replaced_at: Mapped[datetime] = mapped_column(default=now)
