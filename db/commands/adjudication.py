"""Deciding the score of a turn that its raters disagree on; logged and undoable like any score."""

from db.commands.changing import apply
from db.engine import Database
from db.enums import Role
from db.errors import DataError, NotFoundError
from db.models import AdjudicationTable, EventTable, MessageTable
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
        apply(session, event)
        return score_event(event)
