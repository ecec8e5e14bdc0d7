"""What a person may change: asked in one place, `app.data.write`, before anything is changed."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from db import commands
from db.engine import Database
from db.enums import UserRole
from db.errors import EveryTurnError
from db.records import User

_log = logging.getLogger(__name__)

EVERYBODY: frozenset[Callable[..., Any]] = frozenset(
    {
        commands.set_score,
        commands.set_note,
        commands.set_outcome,
        commands.set_outcome_note,
        commands.set_review,
        commands.score_remaining,
        commands.undo,
        commands.redo,
        commands.set_keys,
        commands.keep_chat,
    }
)
"""What annotators may do. All other commands are for admins, new ones too until named here."""

ACTOR = "user_id"
"""The argument by which a command is told who acts: it is the acting person, for admins too."""


class RefusedError(EveryTurnError):
    """A person tried what they may not do; nothing was changed."""


def check(
    db: Database, user: User, command: Callable[..., Any], keywords: Mapping[str, Any]
) -> None:
    """Refuse and log a command that this person may not run.

    Args:
        db: Where the refusal is logged.
        user: Who acts, as the server knows them.
        command: What would be run.
        keywords: The named arguments it would be run with.

    Raises:
        RefusedError: if they may not.
    """
    action = command.__name__.strip("_").replace("_", " ")
    if command not in EVERYBODY and user.role is not UserRole.ADMIN:
        refuse(db, user, action, "only admins may do this")
    if ACTOR in inspect.signature(command).parameters and keywords.get(ACTOR) != user.id:
        refuse(db, user, action, "nobody may do this in another person's name")


def require_admin(db: Database, user: User, action: str) -> None:
    """Refuse and log what only admins may do and no command does, such as an export.

    Raises:
        RefusedError: if the person is none.
    """
    if user.role is not UserRole.ADMIN:
        refuse(db, user, action, "only admins may do this")


def refuse(db: Database, user: User, action: str, why: str) -> NoReturn:
    """Log an attempt and refuse it.

    Raises:
        RefusedError: always.
    """
    _log.warning("refused: %s, who is %s, tried to %s: %s", user.name, user.role, action, why)
    commands.log_refusal(db, user=user, name=user.name, action=action, reason=why)
    raise RefusedError(why, where=action, remedy="Nothing was changed. Ask an admin.")
