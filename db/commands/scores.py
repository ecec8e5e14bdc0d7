"""Scoring: every change is one transaction that also writes the log which undo reads."""

from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.changing import apply, change_score, own_score
from db.commands.counting import recount
from db.engine import Database
from db.enums import ReviewState, Role
from db.errors import DataError, NotFoundError
from db.models import (
    ConversationTable,
    EventTable,
    MessageTable,
    ReviewTable,
    ScoreTable,
)
from db.queries.labelling import score_event
from db.records import ScoreEvent
from db.scoring import check_score


def set_score(
    db: Database, *, user_id: int, message_id: int, value: float | None, note: str | None = None
) -> ScoreEvent | None:
    """Store one user's score of one reply.

    Args:
        db: The database.
        user_id: Who scores.
        message_id: The reply.
        value: Finite number in [-1, 1]; None takes the score and its note away.
        note: Replaces the note; None keeps it, or takes one that waited for the score.

    Returns:
        The entry of the log, None if nothing changed.

    Raises:
        DataError: if the value is no score or the message is not the assistant's.
        NotFoundError: if the message does not exist (any more).
    """
    if value is not None:
        check_score(value, where="score")
    with db.session() as session:
        message = _require_reply(session, message_id)
        if value is None:
            note = ""
        event = change_score(session, user_id, message.conversation_id, message_id, value, note)
        if event is None:
            return None
        recount(session, [message.conversation_id], user_id=user_id)
        return score_event(event)


def set_note(db: Database, *, user_id: int, message_id: int, note: str) -> ScoreEvent | None:
    """Store one user's note of one reply; without a score it waits for one.

    Returns:
        The entry of the log, None if nothing changed.

    Raises:
        DataError: if the message is not the assistant's.
        NotFoundError: if the message does not exist (any more).
    """
    with db.session() as session:
        message = _require_reply(session, message_id)
        row = session.get(ScoreTable, (message_id, user_id))
        value = None if row is None else row.value
        text = note if note.strip() else ""
        event = change_score(session, user_id, message.conversation_id, message_id, value, text)
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
        if value is None:
            note = ""
        event = change_score(session, user_id, conversation_id, None, value, note)
        return None if event is None else score_event(event)


def set_outcome_note(
    db: Database, *, user_id: int, conversation_id: int, note: str
) -> ScoreEvent | None:
    """Store one user's note beside their score of a conversation as a whole, whatever that is now.

    Returns:
        The entry of the log, None if nothing changed.

    Raises:
        DataError: if they have not scored it.
        NotFoundError: if the conversation does not exist (any more).
    """
    with db.session() as session:
        _require_conversation(session, conversation_id)
        row = own_score(session, user_id, conversation_id, None)
        if row is None:
            raise DataError(
                "a note is kept with a score, and there is none of the whole conversation",
                where=f"conversation {conversation_id}",
                remedy="Score the conversation as a whole first.",
            )
        text = note if note.strip() else ""
        event = change_score(session, user_id, conversation_id, None, row.value, text)
        return None if event is None else score_event(event)


def score_remaining(db: Database, *, user_id: int, conversation_id: int, value: float) -> int:
    """Give all replies of a conversation that this user has not scored the same score.

    One undo takes all of it back.

    Returns:
        How many replies it was.

    Raises:
        DataError: if the value is no score.
        NotFoundError: if the conversation does not exist (any more).
    """
    check_score(value, where="score")
    batch = uuid4().hex
    mine = (
        select(ScoreTable.message_id)
        .where(ScoreTable.message_id == MessageTable.id, ScoreTable.user_id == user_id)
        .exists()
    )
    missing = (
        select(MessageTable.id)
        .where(
            MessageTable.conversation_id == conversation_id,
            MessageTable.role == Role.ASSISTANT,
            ~mine,
        )
        .order_by(MessageTable.position)
    )
    with db.session() as session:
        _require_conversation(session, conversation_id)
        ids = list(session.scalars(missing))
        for message_id in ids:
            change_score(session, user_id, conversation_id, message_id, value, None, batch=batch)
        recount(session, [conversation_id], user_id=user_id)
    return len(ids)


def set_review(
    db: Database, *, user_id: int, conversation_id: int, state: ReviewState
) -> ScoreEvent | None:
    """Store where a conversation stands in one user's queue.

    Returns:
        The entry of the log, None if nothing changed.

    Raises:
        NotFoundError: if the conversation does not exist (any more).
    """
    with db.session() as session:
        _require_conversation(session, conversation_id)
        row = session.get(ReviewTable, (conversation_id, user_id))
        before = ReviewState.OPEN if row is None else row.state
        if before is state:
            return None
        event = EventTable(
            user_id=user_id, conversation_id=conversation_id, old_state=before, new_state=state
        )
        apply(session, event)
        return score_event(event)


def _require_reply(session: Session, message_id: int) -> MessageTable:
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
    return message


def _require_conversation(session: Session, conversation_id: int) -> None:
    if session.get(ConversationTable, conversation_id) is None:
        raise NotFoundError(
            f"there is no conversation {conversation_id}",
            where="conversations",
            remedy="It may have been deleted; go back to the list.",
        )
