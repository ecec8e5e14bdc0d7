"""What people have set: for the whole project, and each person for themselves.

The values are one JSON object that `db.records.settings` types, so that a new setting needs no
new column.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from db.columns import CleanJson
from db.models.base import Base, now

PROJECT_ID = 1
"""There is one project in a database."""


class ProjectSettingsTable(Base):
    """The one row of the project's settings; no row means: all as delivered."""

    __tablename__ = "project_settings"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    content: Mapped[dict[str, Any]] = mapped_column(CleanJson())
    updated_at: Mapped[datetime] = mapped_column(default=now)


class UserSettingsTable(Base):
    """One person's own settings; no row means: all as delivered."""

    __tablename__ = "user_settings"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    content: Mapped[dict[str, Any]] = mapped_column(CleanJson())
    updated_at: Mapped[datetime] = mapped_column(default=now)
