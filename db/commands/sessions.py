"""Signing in with a name and a password, slowed down for those who guess, and signing out.

The browser keeps a random token; the database keeps its SHA-256, whose it is and until when. So a
session ends at once when it is signed out, expires, or its person may no longer come in, and
neither a restart of the app nor a copied database changes who is signed in.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from db.engine import Database
from db.errors import EveryTurnError
from db.models import RefusalTable, SessionTable, SignInFailureTable, UserTable, now
from db.passwords import is_right
from db.records import User
from db.text import clean
from db.tokens import new_token, token_sha256

WINDOW = timedelta(minutes=15)
"""How long a failed attempt counts."""

MAX_OF_BOTH = 5
MAX_OF_ADDRESS = 30
MAX_OF_NAME = 100
"""How many failed attempts one name from one address, one address with any names, and one name
from any addresses have in that time. The last is high, or anybody could lock anybody out."""

MAX_REFUSALS = 10_000
_SHOWN_CHARS = 200


class TooManyAttemptsError(EveryTurnError):
    """Somebody has to wait before the next attempt to sign in."""

    def __init__(self, wait: timedelta) -> None:
        """Tell how long, in whole minutes."""
        minutes = -(-int(wait.total_seconds()) // 60)
        super().__init__(
            "there were too many failed attempts",
            where="sign-in",
            remedy=f"Try again in {minutes} min, or ask an admin for a new password.",
        )


def sign_in(
    db: Database, *, name: str, password: str, address: str, lasts: timedelta
) -> str | None:
    """Check a password and open a session.

    The attempt counts as failed before the password is looked at, so that many at once are no way
    around the limit; a right password takes the failures of this name from this address back.

    Returns:
        The token that the browser is to keep; None if name or password are wrong.

    Raises:
        TooManyAttemptsError: if there were too many failures; the password was not looked at.
    """
    name, address = clean(name.strip())[:_SHOWN_CHARS], address[:_SHOWN_CHARS]
    with db.session() as session:
        _count_attempt(session, name, address)
    if not is_right(db.settings, name, password):
        return None
    token = new_token()
    with db.session() as session:
        user = session.scalars(
            select(UserTable).where(UserTable.name == name, UserTable.may_sign_in)
        ).one_or_none()
        if user is None:
            return None
        session.execute(
            delete(SignInFailureTable).where(
                SignInFailureTable.name == name, SignInFailureTable.address == address
            )
        )
        session.execute(delete(SessionTable).where(SessionTable.expires_at <= now()))
        session.add(
            SessionTable(
                token_sha256=token_sha256(token), user_id=user.id, expires_at=now() + lasts
            )
        )
    return token


def sign_out(db: Database, token: str) -> None:
    """End the session with this token, if there is one."""
    with db.session() as session:
        session.execute(
            delete(SessionTable).where(SessionTable.token_sha256 == token_sha256(token))
        )


def log_refusal(db: Database, *, user: User | None, name: str, action: str, reason: str) -> None:
    """Remember an attempt that was refused; the oldest go when there are very many."""
    with db.session() as session:
        row = RefusalTable(
            user_id=None if user is None else user.id,
            name=name[:_SHOWN_CHARS],
            action=action[:_SHOWN_CHARS],
            reason=reason[:_SHOWN_CHARS],
        )
        session.add(row)
        session.flush()
        session.execute(delete(RefusalTable).where(RefusalTable.id <= row.id - MAX_REFUSALS))


def _count_attempt(session: Session, name: str, address: str) -> None:
    table, start = SignInFailureTable, now() - WINDOW
    session.execute(delete(table).where(table.at <= start))
    for limit, same in (
        (MAX_OF_BOTH, (table.name == name, table.address == address)),
        (MAX_OF_ADDRESS, (table.address == address,)),
        (MAX_OF_NAME, (table.name == name,)),
    ):
        count, oldest = session.execute(select(func.count(), func.min(table.at)).where(*same)).one()
        if count >= limit:
            raise TooManyAttemptsError(_left(oldest))
    session.add(SignInFailureTable(name=name, address=address))


def _left(oldest: datetime) -> timedelta:
    return max(oldest + WINDOW - now(), timedelta(seconds=1))
