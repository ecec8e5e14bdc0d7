"""Who is here, and the numbers of the home page."""

from sqlalchemy import ScalarSelect, func, select

from db.engine import LOCAL_USER, Database
from db.enums import ArtifactKind, RunStatus
from db.errors import NotFoundError
from db.models import (
    ArtifactTable,
    ConversationTable,
    RunTable,
    UserTable,
)
from db.records import Overview, User


def local_user(db: Database) -> User:
    """Return the user of a local installation."""
    with db.read_session() as session:
        row = session.scalars(select(UserTable).where(UserTable.name == LOCAL_USER)).one_or_none()
        if row is None:
            raise NotFoundError(
                "the local user is missing",
                where="database",
                remedy="Run `python -m db upgrade`.",
            )
        return User(id=row.id, name=row.name, role=row.role)


def overview(db: Database) -> Overview:
    """Return the numbers of the home page (one query)."""
    open_conversations = select(func.count()).where(ConversationTable.archived.is_(False))
    counted = select(
        func.coalesce(func.sum(ConversationTable.turns), 0),
    ).where(ConversationTable.archived.is_(False))
    scored = select(
        func.coalesce(func.sum(ConversationTable.scored_turns), 0),
    ).where(ConversationTable.archived.is_(False))
    active = [status for status in RunStatus if not status.has_ended]
    counts: list[ScalarSelect[int]] = [
        statement.scalar_subquery()
        for statement in (
            open_conversations,
            counted,
            scored,
            select(func.count()).select_from(RunTable),
            select(func.count()).select_from(RunTable).where(RunTable.status.in_(active)),
            select(func.count())
            .select_from(ArtifactTable)
            .where(ArtifactTable.kind == ArtifactKind.ADAPTER),
        )
    ]
    with db.read_session() as session:
        row = session.execute(select(*counts)).one()
    return Overview(
        conversations=row[0],
        turns=row[1],
        scored_turns=row[2],
        runs=row[3],
        active_runs=row[4],
        adapters=row[5],
    )
