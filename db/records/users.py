"""The people who use the app."""

from dataclasses import dataclass
from datetime import datetime

from db.enums import UserRole


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person who scores or administers."""

    id: int
    name: str
    role: UserRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user as the list of people shows them.

    Attributes:
        user: Who it is.
        may_sign_in: Whether they may come in where people sign in; raters that only a file names
            may not.
        scores: How many turns they have scored.
    """

    user: User
    may_sign_in: bool
    scores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One attempt to do what the person may not do.

    Attributes:
        name: Who tried; a name that was typed where nobody had signed in.
        action: What they tried, by its name in the code.
        reason: Why it was refused.
    """

    name: str
    action: str
    reason: str
    at: datetime
