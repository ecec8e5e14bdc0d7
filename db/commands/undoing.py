"""Undo and redo of one's own changes, read from the log: so they outlive a reload and a crash.

The log only grows. An undo is a new entry that points at the one it takes back; a redo points at
the undo, and can be undone in its turn. What is not undone yet is therefore always: an entry that
nothing points at. Decisions on turns that raters disagree on are taken back where they are made.
"""

from uuid import uuid4

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, aliased

from db.commands.changing import apply
from db.commands.counting import recount
from db.engine import Database
from db.models import EventTable
from db.queries.labelling import is_first_hand, score_event
from db.records import ScoreEvent


def undo(db: Database, *, user_id: int) -> tuple[ScoreEvent, ...]:
    """Take back this user's latest change that was not taken back yet.

    Returns:
        The inverse changes: one, or all of an action on many turns; none if nothing is left.
    """
    return _reverse(db, user_id, is_undo=True)


def redo(db: Database, *, user_id: int) -> tuple[ScoreEvent, ...]:
    """Make this user's latest undo unmade, unless they have changed something since.

    Returns:
        The changes, made again; none if there is nothing to redo.
    """
    return _reverse(db, user_id, is_undo=False)


def _reverse(db: Database, user_id: int, *, is_undo: bool) -> tuple[ScoreEvent, ...]:
    with db.session() as session:
        standing = _standing(user_id, of_undos=not is_undo)
        latest = session.scalars(
            select(EventTable).where(*standing).order_by(EventTable.id.desc()).limit(1)
        ).one_or_none()
        if latest is None:
            return ()
        events = [latest]
        if latest.batch is not None:
            whole = select(EventTable).where(*standing, EventTable.batch == latest.batch)
            events = list(session.scalars(whole.order_by(EventTable.id.desc())))
        batch = uuid4().hex if len(events) > 1 else None
        made = [_reversed(session, event, is_undo=is_undo, batch=batch) for event in events]
        recount(session, {event.conversation_id for event in made}, user_id=user_id)
        return tuple(score_event(event) for event in made)


def _reversed(
    session: Session, event: EventTable, *, is_undo: bool, batch: str | None
) -> EventTable:
    inverse = EventTable(
        user_id=event.user_id,
        conversation_id=event.conversation_id,
        message_id=event.message_id,
        old_value=event.new_value,
        new_value=event.old_value,
        old_note=event.new_note,
        new_note=event.old_note,
        old_state=event.new_state,
        new_state=event.old_state,
        undoes_id=event.id,
        is_undo=is_undo,
        batch=batch,
    )
    apply(session, inverse)
    return inverse


def _standing(user_id: int, *, of_undos: bool) -> list[ColumnElement[bool]]:
    """Return what is true of the changes (or undos) of this user that can be reversed."""
    inverse, later, change = aliased(EventTable), aliased(EventTable), aliased(EventTable)
    conditions: list[ColumnElement[bool]] = [
        EventTable.user_id == user_id,
        EventTable.undoable.is_(True),
        ~EventTable.adjudicates,
        EventTable.is_undo.is_(of_undos),
        ~select(inverse.id).where(inverse.undoes_id == EventTable.id).exists(),
        # What somebody else has taken away since, by editing the message, stays away.
        ~select(later.id)
        .where(
            later.message_id == EventTable.message_id,
            later.user_id == user_id,
            ~later.undoable,
            ~later.adjudicates,
            later.id > EventTable.id,
        )
        .exists(),
    ]
    if of_undos:
        last_change = (
            select(func.coalesce(func.max(change.id), 0))
            .where(
                change.user_id == user_id,
                change.undoable,
                ~change.adjudicates,
                is_first_hand(change.undoes_id.expression),
            )
            .scalar_subquery()
        )
        conditions.append(EventTable.id > last_change)
    return conditions
