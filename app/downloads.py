"""Files to take away: made at the click, for admins, by whoever looked at the page."""

from collections.abc import Callable
from typing import TypeVar

from app import auth, permissions
from app.connection import database

T = TypeVar("T")


def for_admins(what: str, make: Callable[[], T]) -> Callable[[], T]:
    """Return what a download button calls at the click: `make`, once it is asked who clicks.

    Args:
        what: What is taken away, for the log of refusals.
        make: Makes the file; may read the database.
    """

    def made() -> T:
        permissions.require_admin(database(), auth.acting_user(), f"export {what}")
        return make()

    return auth.later(made)
