"""Imports, and the scores they added to conversations that were there before them."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.columns import CleanJson
from db.enums import ImportState
from db.models.base import NEVER_REUSE_IDS, Base, now


class ImportTable(Base):
    """One import: which files, read how, what it did. It can be taken back as a whole.

    `files` holds what `db.records.ImportFile` says, `report` what `ImportReport` says, and
    `process` tells the process that works on it from all others.
    """

    __tablename__ = "imports"
    __table_args__ = (Index(None, "state"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[ImportState]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    files: Mapped[list[dict[str, Any]]] = mapped_column(CleanJson())
    report: Mapped[dict[str, Any] | None] = mapped_column(CleanJson())
    process: Mapped[str] = mapped_column(default="")
    progress: Mapped[float] = mapped_column(default=0.0)
    message: Mapped[str] = mapped_column(default="")
    error_text: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    changed_at: Mapped[datetime] = mapped_column(default=now)


class ImportedScoreTable(Base):
    """A score that an import gave to a conversation which was there already.

    Undoing the import takes it back if nobody has changed it since. `message_id` is None for a
    score of the conversation as a whole.
    """

    __tablename__ = "imported_scores"
    __table_args__ = (
        Index(None, "import_id"),
        Index(None, "conversation_id"),
        Index(None, "message_id"),
        Index(None, "user_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    import_id: Mapped[int] = mapped_column(ForeignKey("imports.id", ondelete="CASCADE"))
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    message_id: Mapped[int | None] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    adjudicates: Mapped[bool]
    value: Mapped[float]
