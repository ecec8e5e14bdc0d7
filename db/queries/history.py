"""What became of one turn: every score by whom and when, and what it said before it was edited."""

from sqlalchemy import select
from sqlalchemy.orm import aliased

from db.engine import Database
from db.models import EventTable, MessageVersionTable, UserTable
from db.records.labels import TurnChange


def turn_history(db: Database, message_id: int, *, limit: int = 200) -> list[TurnChange]:
    """Return the latest changes of one turn's scores and text, newest first."""
    changer = aliased(UserTable)
    events = (
        select(EventTable, UserTable.name, changer.name)
        .join(UserTable, UserTable.id == EventTable.user_id)
        .outerjoin(changer, changer.id == EventTable.changed_by)
        .where(EventTable.message_id == message_id)
        .order_by(EventTable.id.desc())
        .limit(limit)
    )
    versions = (
        select(MessageVersionTable, UserTable.name)
        .outerjoin(UserTable, UserTable.id == MessageVersionTable.replaced_by)
        .where(MessageVersionTable.message_id == message_id)
        .order_by(MessageVersionTable.id.desc())
        .limit(limit)
    )
    with db.read_session() as session:
        changes = [
            TurnChange(
                at=row.at,
                who=rater,
                old_value=row.old_value,
                new_value=row.new_value,
                note=row.new_note,
                adjudicates=row.adjudicates,
                is_undo=row.is_undo,
                is_redo=row.undoes_id is not None and not row.is_undo,
                changed_by=by or "",
            )
            for row, rater, by in session.execute(events)
        ]
        changes += [
            TurnChange(
                at=row.replaced_at,
                who=by or "",
                old_text=row.content,
                scores_kept=row.scores_kept,
            )
            for row, by in session.execute(versions)
        ]
    return sorted(changes, key=lambda change: change.at, reverse=True)[:limit]
