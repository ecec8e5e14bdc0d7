"""Who is using the app, and what they may do."""

from app import data
from db.records import User


def current_user() -> User:
    """Return the signed-in person; local use has exactly one, made by the database itself."""
    return data.local_user()
