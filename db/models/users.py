"""The people who use the app, and how they came in."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from db.enums import UserRole
from db.models.base import NEVER_REUSE_IDS, Base, now


class UserTable(Base):
    """A person who scores or administers.

    Raters that a file names become users, too, so being one is no right to come in: only
    `may_sign_in` is.
    """

    __tablename__ = "users"
    __table_args__ = (UniqueConstraint("name"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[UserRole]
    may_sign_in: Mapped[bool] = mapped_column(default=False, server_default=false())
    created_at: Mapped[datetime] = mapped_column(default=now)


class SessionTable(Base):
    """A browser that is signed in; it holds the token, we only its SHA-256."""

    __tablename__ = "sessions"
    __table_args__ = (Index(None, "user_id"),)

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime]


class SignInFailureTable(Base):
    """One failed attempt to sign in; kept as long as it slows the next one down."""

    __tablename__ = "sign_in_failures"
    __table_args__ = (Index(None, "name", "at"), Index(None, "address", "at"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    address: Mapped[str]
    at: Mapped[datetime] = mapped_column(default=now)


class RefusalTable(Base):
    """One attempt to do what the person may not do; the log only grows."""

    __tablename__ = "refusals"
    __table_args__ = (Index(None, "user_id"), NEVER_REUSE_IDS)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    name: Mapped[str]
    action: Mapped[str]
    reason: Mapped[str]
    at: Mapped[datetime] = mapped_column(default=now)
