"""Reading imports: where they stand, and what taking one back means."""

from sqlalchemy import ColumnElement, Select, func, or_, select

from db.engine import Database
from db.enums import ImportState
from db.errors import NotFoundError
from db.models import (
    ConversationTable,
    EventTable,
    ImportedScoreTable,
    ImportTable,
    MessageTable,
    MessageVersionTable,
    UserTable,
)
from db.records import Import, ImportFile, ImportReport, UndoEffects


def import_(db: Database, import_id: int) -> Import:
    """Return one import.

    Raises:
        NotFoundError: if it does not exist (any more).
    """
    with db.read_session() as session:
        found = session.execute(_imports().where(ImportTable.id == import_id)).one_or_none()
    if found is None:
        raise NotFoundError(
            f"there is no import {import_id}",
            where="imports",
            remedy="It may have been discarded; choose the files again.",
        )
    return _record(found[0], found[1])


def imports(db: Database, *states: ImportState, limit: int = 100) -> list[Import]:
    """Return the latest imports in any of these states (in any state, if none is given)."""
    statement = _imports().order_by(ImportTable.id.desc()).limit(limit)
    if states:
        statement = statement.where(ImportTable.state.in_(states))
    with db.read_session() as session:
        return [_record(row, user) for row, user in session.execute(statement)]


def undo_effects(db: Database, import_id: int) -> UndoEffects:
    """Return what undoing an import would take away."""
    brought = ConversationTable.import_id == import_id
    given = (
        select(UserTable.name, func.count(_scored_thing().distinct()))
        .join(EventTable, EventTable.user_id == UserTable.id)
        .join(ConversationTable, ConversationTable.id == EventTable.conversation_id)
        .where(brought, EventTable.undoable, EventTable.new_value.is_not(None))
        .group_by(UserTable.name)
        .order_by(UserTable.name)
    )
    edited = (
        select(func.count(MessageTable.conversation_id.distinct()))
        .join(MessageVersionTable, MessageVersionTable.message_id == MessageTable.id)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .where(brought)
    )
    merged = select(func.count(ImportedScoreTable.id)).where(
        ImportedScoreTable.import_id == import_id
    )
    with db.read_session() as session:
        changed = session.scalar(merged.where(changed_since())) or 0
        return UndoEffects(
            conversations=session.scalar(select(func.count(ConversationTable.id)).where(brought))
            or 0,
            edited=session.scalar(edited) or 0,
            scores_since=tuple((name, count) for name, count in session.execute(given)),
            merged_scores=(session.scalar(merged) or 0) - changed,
            changed_scores=changed,
        )


def changed_since() -> ColumnElement[bool]:
    """Return the condition that somebody has changed an imported score by hand."""
    same_message = or_(
        EventTable.message_id == ImportedScoreTable.message_id,
        EventTable.message_id.is_(None) & ImportedScoreTable.message_id.is_(None),
    )
    return (
        select(EventTable.id)
        .where(
            EventTable.user_id == ImportedScoreTable.user_id,
            EventTable.conversation_id == ImportedScoreTable.conversation_id,
            same_message,
            EventTable.adjudicates == ImportedScoreTable.adjudicates,
            EventTable.new_state.is_(None),
            EventTable.undoable,
        )
        .exists()
    )


def _scored_thing() -> ColumnElement[int]:
    """A number that tells a message from others, and from its conversation as a whole."""
    return func.coalesce(EventTable.message_id, -EventTable.conversation_id)


def _imports() -> Select[ImportTable, str]:
    return select(ImportTable, func.coalesce(UserTable.name, "")).outerjoin(
        UserTable, UserTable.id == ImportTable.user_id
    )


def _record(row: ImportTable, user: str) -> Import:
    return Import(
        id=row.id,
        state=row.state,
        user=user,
        files=tuple(ImportFile.from_json(file) for file in row.files),
        report=None if row.report is None else ImportReport.from_json(row.report),
        process=row.process,
        progress=row.progress,
        message=row.message,
        error_text=row.error_text,
        created_at=row.created_at,
        changed_at=row.changed_at,
    )
