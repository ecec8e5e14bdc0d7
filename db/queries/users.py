"""The people: who is signed in, who may come in, and who tried what they may not."""

from sqlalchemy import func, select

from db.engine import Database
from db.models import RefusalTable, ScoreTable, SessionTable, UserTable, now
from db.records import Person, Refusal, User
from db.tokens import token_sha256


def session_user(db: Database, token: str) -> User | None:
    """Return who is signed in with this token; None if nobody is (any more)."""
    statement = (
        select(UserTable)
        .join(SessionTable, SessionTable.user_id == UserTable.id)
        .where(
            SessionTable.token_sha256 == token_sha256(token),
            SessionTable.expires_at > now(),
            UserTable.may_sign_in,
        )
    )
    with db.read_session() as session:
        return _user(session.scalars(statement).one_or_none())


def admitted_user(db: Database, name: str) -> User | None:
    """Return the person with this name, whatever its capitals, if they may come in.

    Where two differ in capitals only, nobody is meant.
    """
    statement = select(UserTable).where(
        func.lower(UserTable.name) == name.strip().lower(), UserTable.may_sign_in
    )
    with db.read_session() as session:
        found = session.scalars(statement).all()
        return _user(found[0]) if len(found) == 1 else None


def people(db: Database) -> list[Person]:
    """Return everybody who may sign in or has scored a turn, by name."""
    scores = (
        select(func.count())
        .where(ScoreTable.user_id == UserTable.id)
        .correlate(UserTable)
        .scalar_subquery()
    )
    with db.read_session() as session:
        rows = session.execute(select(UserTable, scores).order_by(UserTable.name)).all()
    return [
        Person(
            user=User(id=row.id, name=row.name, role=row.role),
            may_sign_in=row.may_sign_in,
            scores=count,
        )
        for row, count in rows
        if row.may_sign_in or count
    ]


def refusals(db: Database, *, limit: int = 100) -> list[Refusal]:
    """Return the latest attempts that were refused, newest first."""
    statement = select(RefusalTable).order_by(RefusalTable.id.desc()).limit(limit)
    with db.read_session() as session:
        return [
            Refusal(name=row.name, action=row.action, reason=row.reason, at=row.at)
            for row in session.scalars(statement)
        ]


def _user(row: UserTable | None) -> User | None:
    return None if row is None else User(id=row.id, name=row.name, role=row.role)
