"""Collections: replies that a model is asked for in the background, and which prompts are done."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.columns import CleanJson
from db.enums import CollectionState
from db.models.base import NEVER_REUSE_IDS, Base, now


class CollectionTable(Base):
    """One collection: what is asked of which model, and how far it is.

    `plan` holds what `db.records.CollectionPlan` says, `prompts` the conversations to go on from
    in the native format, and `process` tells the process that works on it from all others.
    """

    __tablename__ = "collections"
    __table_args__ = (Index(None, "state"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[CollectionState]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    start_token: Mapped[str] = mapped_column(unique=True)
    plan: Mapped[dict[str, Any]] = mapped_column(CleanJson())
    prompts: Mapped[str]
    prompt_count: Mapped[int]
    device: Mapped[str]
    process: Mapped[str] = mapped_column(default="")
    progress: Mapped[float] = mapped_column(default=0.0)
    message: Mapped[str] = mapped_column(default="")
    error_text: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    changed_at: Mapped[datetime] = mapped_column(default=now)


class CollectedPromptTable(Base):
    """A prompt whose replies are stored; the row comes in the same transaction as they do."""

    __tablename__ = "collected_prompts"

    collection_id: Mapped[int] = mapped_column(
        ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True
    )
    prompt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    conversations: Mapped[int]
    repeats: Mapped[int]
