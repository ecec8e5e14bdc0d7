"""Who is here, and the numbers of the home page."""

from sqlalchemy import ScalarSelect, func, select

from db.engine import LOCAL_USER, Database
from db.enums import ArtifactKind, Role, RunStatus
from db.errors import NotFoundError
from db.models import (
    ArtifactTable,
    ConversationTable,
    MessageTable,
    RunTable,
    ScoreTable,
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
    turns = (
        select(func.count())
        .select_from(MessageTable)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .where(ConversationTable.archived.is_(False), MessageTable.role == Role.ASSISTANT)
    )
    scored = select(ScoreTable.message_id).where(ScoreTable.message_id == MessageTable.id).exists()
    active = [status for status in RunStatus if not status.has_ended]
    counts: list[ScalarSelect[int]] = [
        statement.scalar_subquery()
        for statement in (
            open_conversations,
            turns,
            turns.where(scored),
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
