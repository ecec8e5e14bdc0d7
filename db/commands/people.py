"""Who may come in, and what they may do; only the command line on the machine calls these."""

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from db.engine import Database
from db.enums import UserRole
from db.errors import DataError, NotFoundError
from db.models import SessionTable, UserTable
from db.passwords import remove_password, set_password
from db.records import User
from db.text import MAX_NAME_CHARS, clean


def admit_person(db: Database, name: str, *, role: UserRole, password: str | None) -> User:
    """Let a person sign in, with this role; whoever was signed in under this name has to again.

    Args:
        db: The database.
        name: As they will type it; the e-mail address where a provider vouches for them.
        role: What they may do.
        password: None for somebody who signs in through a provider only.

    Raises:
        DataError: if the name or the password cannot be used.
    """
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable() or clean(name) != name:
        raise DataError(
            "this cannot be a person's name",
            where="name",
            remedy=f"Give 1 to {MAX_NAME_CHARS} printable characters.",
        )
    if password is None:
        remove_password(db.settings, name)
    else:
        set_password(db.settings, name, password)
    with db.session() as session:
        user = _user(session, name)
        if user is None:
            user = UserTable(name=name, role=role)
            session.add(user)
        user.role, user.may_sign_in = role, True
        session.flush()
        _end_sessions(session, user.id)
        return User(id=user.id, name=user.name, role=user.role)


def dismiss_person(db: Database, name: str) -> User:
    """Keep a person out from now on; what they scored stays theirs.

    Raises:
        NotFoundError: if nobody who may sign in has this name.
    """
    with db.session() as session:
        user = _user(session, name.strip())
        if user is None or not user.may_sign_in:
            raise NotFoundError(
                f"nobody called {name!r} may sign in",
                where="users",
                remedy="See who may: python -m db user list.",
            )
        user.may_sign_in = False
        _end_sessions(session, user.id)
        dismissed = User(id=user.id, name=user.name, role=user.role)
    remove_password(db.settings, dismissed.name)
    return dismissed


def _user(session: Session, name: str) -> UserTable | None:
    return session.scalars(select(UserTable).where(UserTable.name == name)).one_or_none()


def _end_sessions(session: Session, user_id: int) -> None:
    session.execute(delete(SessionTable).where(SessionTable.user_id == user_id))
