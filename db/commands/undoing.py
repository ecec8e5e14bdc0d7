"""Undo and redo of one's own changes, read from the log: so they outlive a reload and a crash.

The log only grows. An undo is a new entry that points at the one it takes back; a redo points at
the undo, and can be undone in its turn. What is not undone yet is therefore always: an entry that
nothing points at. Decisions on turns that raters disagree on are undone and redone where they are
made, apart from what a person says as a rater.
"""

from uuid import uuid4

from sqlalchemy import ColumnElement, func, or_, select
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
    return _reverse(db, user_id, is_undo=True, of_decisions=False)


def redo(db: Database, *, user_id: int) -> tuple[ScoreEvent, ...]:
    """Make this user's latest undo unmade, unless they have changed something since.

    Returns:
        The changes, made again; none if there is nothing to redo.
    """
    return _reverse(db, user_id, is_undo=False, of_decisions=False)


def undo_adjudication(db: Database, *, user_id: int) -> ScoreEvent | None:
    """Take back this user's latest decision that was not taken back yet.

    One that somebody else has decided anew since is theirs now, and is passed over.

    Returns:
        The inverse change, None if there is nothing left to undo.
    """
    return next(iter(_reverse(db, user_id, is_undo=True, of_decisions=True)), None)


def redo_adjudication(db: Database, *, user_id: int) -> ScoreEvent | None:
    """Decide again what this user's latest undo took back, unless they have decided since.

    Returns:
        The change, made again; None if there is nothing to redo.
    """
    return next(iter(_reverse(db, user_id, is_undo=False, of_decisions=True)), None)


def _reverse(
    db: Database, user_id: int, *, is_undo: bool, of_decisions: bool
) -> tuple[ScoreEvent, ...]:
    with db.session() as session:
        standing = _standing(user_id, of_undos=not is_undo, of_decisions=of_decisions)
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
        adjudicates=event.adjudicates,
        undoes_id=event.id,
        is_undo=is_undo,
        batch=batch,
    )
    apply(session, inverse)
    return inverse


def _standing(user_id: int, *, of_undos: bool, of_decisions: bool) -> list[ColumnElement[bool]]:
    """Return what is true of the changes (or undos) of this user that can be reversed."""
    inverse, later, change = aliased(EventTable), aliased(EventTable), aliased(EventTable)
    # What somebody else has taken away since, by editing the message, stays away; and a turn that
    # somebody else has decided since is theirs.
    is_overridden = (
        [later.adjudicates, or_(later.user_id != user_id, ~later.undoable)]
        if of_decisions
        else [~later.adjudicates, later.user_id == user_id, ~later.undoable]
    )
    conditions: list[ColumnElement[bool]] = [
        EventTable.user_id == user_id,
        EventTable.undoable.is_(True),
        EventTable.adjudicates.is_(of_decisions),
        EventTable.is_undo.is_(of_undos),
        ~select(inverse.id).where(inverse.undoes_id == EventTable.id).exists(),
        ~select(later.id)
        .where(later.message_id == EventTable.message_id, later.id > EventTable.id, *is_overridden)
        .exists(),
    ]
    if of_undos:
        last_change = (
            select(func.coalesce(func.max(change.id), 0))
            .where(
                change.user_id == user_id,
                change.undoable,
                change.adjudicates.is_(of_decisions),
                is_first_hand(change.undoes_id.expression),
            )
            .scalar_subquery()
        )
        conditions.append(EventTable.id > last_change)
    return conditions
