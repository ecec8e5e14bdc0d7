"""The people who use the app."""

from dataclasses import dataclass

from db.enums import UserRole


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person who scores or administers."""

    id: int
    name: str
    role: UserRole
