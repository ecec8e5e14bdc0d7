"""Deciding the score of a turn that its raters disagree on; logged and undoable like any score."""

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from db.engine import Database
from db.enums import Role
from db.errors import DataError, NotFoundError
from db.models import AdjudicationTable, EventTable, MessageTable, now
from db.queries.labelling import score_event
from db.records import ScoreEvent
from db.scoring import check_score
from db.text import clean


def adjudicate(
    db: Database, *, user_id: int, message_id: int, value: float | None, note: str = ""
) -> ScoreEvent | None:
    """Store the decided score of one reply beside what its raters said; nothing of theirs changes.

    Args:
        db: The database.
        user_id: Who decides.
        message_id: The reply.
        value: Finite number in [-1, 1]; None takes the decision back.
        note: Why; replaces the note of an earlier decision.

    Returns:
        The entry of the log, None if nothing changed.

    Raises:
        DataError: if the value is no score or the message is not the assistant's.
        NotFoundError: if the message does not exist (any more).
    """
    if value is not None:
        check_score(value, where="adjudicated score")
    with db.session() as session:
        message = session.get(MessageTable, message_id)
        if message is None:
            raise NotFoundError(
                f"there is no message {message_id}",
                where="adjudicated score",
                remedy="It may have been deleted; load the list again.",
            )
        if message.role is not Role.ASSISTANT:
            raise DataError(
                f"a {message.role} message cannot be scored",
                where=f"message {message_id}",
                remedy="Decide on the assistant's replies.",
            )
        row = session.get(AdjudicationTable, message_id)
        old_value, old_note = (None, "") if row is None else (row.value, row.note)
        new_value = None if value is None else float(value)
        new_note = "" if value is None else clean(note)
        if (old_value, old_note) == (new_value, new_note):
            return None
        event = EventTable(
            user_id=user_id,
            conversation_id=message.conversation_id,
            message_id=message_id,
            old_value=old_value,
            new_value=new_value,
            old_note=old_note,
            new_note=new_note,
            adjudicates=True,
        )
        _store(session, event)
        return score_event(event)


def undo_adjudication(db: Database, *, user_id: int) -> ScoreEvent | None:
    """Take back this user's latest decision that was not taken back yet.

    One that somebody else has decided anew since is theirs now, and is passed over.

    Returns:
        The inverse change, None if there is nothing left to undo.
    """
    inverse, later = aliased(EventTable), aliased(EventTable)
    latest = (
        select(EventTable)
        .where(
            EventTable.user_id == user_id,
            EventTable.adjudicates,
            EventTable.undoable,
            EventTable.undoes_id.is_(None),
            ~select(inverse.id).where(inverse.undoes_id == EventTable.id).exists(),
            ~select(later.id)
            .where(
                later.message_id == EventTable.message_id,
                later.adjudicates,
                later.user_id != user_id,
                later.id > EventTable.id,
            )
            .exists(),
        )
        .order_by(EventTable.id.desc())
        .limit(1)
    )
    with db.session() as session:
        undone = session.scalars(latest).one_or_none()
        if undone is None:
            return None
        event = EventTable(
            user_id=user_id,
            conversation_id=undone.conversation_id,
            message_id=undone.message_id,
            old_value=undone.new_value,
            new_value=undone.old_value,
            old_note=undone.new_note,
            new_note=undone.old_note,
            undoes_id=undone.id,
            adjudicates=True,
        )
        _store(session, event)
        return score_event(event)


def _store(session: Session, event: EventTable) -> None:
    """Log a decision and bring the decided score to where it leads."""
    session.add(event)
    row = session.get(AdjudicationTable, event.message_id)
    if event.new_value is None:
        if row is not None:
            session.delete(row)
    elif row is None:
        session.add(
            AdjudicationTable(
                message_id=event.message_id,
                user_id=event.user_id,
                value=event.new_value,
                note=event.new_note,
            )
        )
    else:
        row.user_id, row.value, row.note = event.user_id, event.new_value, event.new_note
        row.updated_at = now()
    session.flush()
