"""The people who use the app."""

from datetime import datetime

from sqlalchemy import (
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.enums import UserRole
from db.models.base import NEVER_REUSE_IDS, Base, now


class UserTable(Base):
    """A person who scores or administers."""

    __tablename__ = "users"
    __table_args__ = (UniqueConstraint("name"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[UserRole]
    created_at: Mapped[datetime] = mapped_column(default=now)
