"""The one door through which the pages change the database."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from app import auth, permissions
from app.connection import database
from app.data.reading import refresh
from db.engine import Database

P = ParamSpec("P")
T = TypeVar("T")


def write(command: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a command that changes the database, and forget every row read before it.

    Example: `data.write(commands.set_tags, [3], ("support",))`.

    Raises:
        RefusedError: if the signed-in person may not run it (`app.permissions`).
        NotSignedInError: if nobody is signed in.
    """
    permissions.check(database(), auth.acting_user(), command, kwargs)
    try:
        return command(database(), *args, **kwargs)
    finally:
        refresh()
