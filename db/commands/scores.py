"""Scoring: every change is one transaction that also writes the log which undo reads."""

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from db.engine import Database
from db.enums import ReviewState, Role
from db.errors import DataError, NotFoundError
from db.models import (
    ConversationTable,
    EventTable,
    MessageTable,
    OutcomeTable,
    ReviewTable,
    ScoreTable,
    now,
)
from db.queries.labelling import score_event
from db.records import ScoreEvent
from db.scoring import check_score
from db.text import clean


def set_score(
    db: Database, *, user_id: int, message_id: int, value: float | None, note: str | None = None
) -> ScoreEvent | None:
    """Store one user's score of one reply.

    Args:
        db: The database.
        user_id: Who scores.
        message_id: The reply.
        value: Finite number in [-1, 1]; None takes the score and its note away.
        note: Replaces the note; None keeps it.

    Returns:
        The entry of the log, None if nothing changed.

    Raises:
        DataError: if the value is no score or the message is not the assistant's.
        NotFoundError: if the message does not exist (any more).
    """
    if value is not None:
        check_score(value, where="score")
    with db.session() as session:
        message = session.get(MessageTable, message_id)
        if message is None:
            raise NotFoundError(
                f"there is no message {message_id}",
                where="score",
                remedy="It may have been deleted; load the conversation again.",
            )
        if message.role is not Role.ASSISTANT:
            raise DataError(
                f"a {message.role} message cannot be scored",
                where=f"message {message_id}",
                remedy="Score the assistant's replies.",
            )
        event = _change(session, user_id, message.conversation_id, message_id, value, note)
        return None if event is None else score_event(event)


def set_outcome(
    db: Database,
    *,
    user_id: int,
    conversation_id: int,
    value: float | None,
    note: str | None = None,
) -> ScoreEvent | None:
    """Store one user's score of a conversation as a whole (see `set_score`).

    Raises:
        DataError: if the value is no score.
        NotFoundError: if the conversation does not exist (any more).
    """
    if value is not None:
        check_score(value, where="score")
    with db.session() as session:
        _require_conversation(session, conversation_id)
        event = _change(session, user_id, conversation_id, None, value, note)
        return None if event is None else score_event(event)


def undo_score(db: Database, *, user_id: int) -> ScoreEvent | None:
    """Take back this user's latest change that was not taken back yet.

    The log only grows: the inverse change is a new entry that points at the undone one.

    Returns:
        The inverse change, None if there is nothing left to undo.
    """
    inverse = aliased(EventTable)
    latest = (
        select(EventTable)
        .where(
            EventTable.user_id == user_id,
            EventTable.undoable,
            ~EventTable.adjudicates,
            EventTable.undoes_id.is_(None),
            ~select(inverse.id).where(inverse.undoes_id == EventTable.id).exists(),
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
        )
        _store(session, event)
        return score_event(event)


def set_review(db: Database, *, user_id: int, conversation_id: int, state: ReviewState) -> None:
    """Store where a conversation stands in one user's queue.

    Raises:
        NotFoundError: if the conversation does not exist (any more).
    """
    with db.session() as session:
        _require_conversation(session, conversation_id)
        session.merge(
            ReviewTable(
                conversation_id=conversation_id, user_id=user_id, state=state, updated_at=now()
            )
        )


def _change(
    session: Session,
    user_id: int,
    conversation_id: int,
    message_id: int | None,
    value: float | None,
    note: str | None,
) -> EventTable | None:
    """Store a score and its log entry; None if that changes nothing."""
    row = _row(session, user_id, conversation_id, message_id)
    old_value, old_note = (None, "") if row is None else (row.value, row.note)
    new_value = None if value is None else float(value)
    new_note = old_note if note is None else clean(note)
    if new_value is None:
        new_note = ""
    if (old_value, old_note) == (new_value, new_note):
        return None
    event = EventTable(
        user_id=user_id,
        conversation_id=conversation_id,
        message_id=message_id,
        old_value=old_value,
        new_value=new_value,
        old_note=old_note,
        new_note=new_note,
    )
    _store(session, event)
    return event


def _store(session: Session, event: EventTable) -> None:
    """Log a change and bring the score to where the change leads."""
    session.add(event)
    row = _row(session, event.user_id, event.conversation_id, event.message_id)
    if event.new_value is None:
        if row is not None:
            session.delete(row)
    elif row is not None:
        row.value, row.note, row.updated_at = event.new_value, event.new_note, now()
    elif event.message_id is None:
        session.add(
            OutcomeTable(
                conversation_id=event.conversation_id,
                user_id=event.user_id,
                value=event.new_value,
                note=event.new_note,
            )
        )
    else:
        session.add(
            ScoreTable(
                message_id=event.message_id,
                user_id=event.user_id,
                value=event.new_value,
                note=event.new_note,
            )
        )
    session.flush()


def _row(
    session: Session, user_id: int, conversation_id: int, message_id: int | None
) -> ScoreTable | OutcomeTable | None:
    if message_id is None:
        return session.get(OutcomeTable, (conversation_id, user_id))
    return session.get(ScoreTable, (message_id, user_id))


def _require_conversation(session: Session, conversation_id: int) -> None:
    if session.get(ConversationTable, conversation_id) is None:
        raise NotFoundError(
            f"there is no conversation {conversation_id}",
            where="conversations",
            remedy="It may have been deleted; go back to the list.",
        )
