"""One change of what a person says: its entry in the log, and what the entry leads to.

Everything here runs inside the caller's transaction.
"""

from sqlalchemy.orm import Session

from db.enums import ReviewState
from db.models import (
    AdjudicationTable,
    EventTable,
    OutcomeTable,
    PendingNoteTable,
    ReviewTable,
    ScoreTable,
    now,
)
from db.text import clean


def change_score(
    session: Session,
    user_id: int,
    conversation_id: int,
    message_id: int | None,
    value: float | None,
    note: str | None,
    *,
    batch: str | None = None,
) -> EventTable | None:
    """Store a score (of the whole conversation if there is no message) and its log entry.

    A note of a reply without a score is a change, too: it waits, and the score takes it over.

    Args:
        session: The caller's transaction.
        user_id: Who scores.
        conversation_id: The conversation.
        message_id: The reply; None for the conversation as a whole.
        value: The score; None for none.
        note: Replaces the note; None keeps it.
        batch: Names the one action that this change is a part of.

    Returns:
        The entry, None if nothing changed.
    """
    row = own_score(session, user_id, conversation_id, message_id)
    if row is None:
        old_value, old_note = None, _waiting_note(session, user_id, message_id)
    else:
        old_value, old_note = row.value, row.note
    new_value = None if value is None else float(value)
    new_note = old_note if note is None else clean(note)
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
        batch=batch,
    )
    apply(session, event)
    return event


def apply(session: Session, event: EventTable) -> None:
    """Log a change and bring what it changes to where it leads."""
    session.add(event)
    if event.adjudicates:
        _apply_decision(session, event)
    elif event.new_state is not None:
        _apply_state(session, event, event.new_state)
    else:
        _apply_score(session, event)
        _apply_waiting_note(session, event)
    session.flush()


def take_away(
    session: Session,
    said: ScoreTable | OutcomeTable | AdjudicationTable | PendingNoteTable,
    conversation_id: int,
    *,
    changed_by: int | None = None,
) -> None:
    """Delete what a person says, and log that it went; undo passes over that.

    Args:
        session: The caller's transaction.
        said: A score, a decision, or a note that waits for a score.
        conversation_id: The conversation that it is about.
        changed_by: Who takes it away, where that is a person other than the rater.
    """
    session.add(
        EventTable(
            user_id=said.user_id,
            conversation_id=conversation_id,
            message_id=None if isinstance(said, OutcomeTable) else said.message_id,
            old_value=None if isinstance(said, PendingNoteTable) else said.value,
            old_note=said.note,
            adjudicates=isinstance(said, AdjudicationTable),
            undoable=False,
            changed_by=changed_by,
        )
    )
    session.delete(said)


def own_score(
    session: Session, user_id: int, conversation_id: int, message_id: int | None
) -> ScoreTable | OutcomeTable | None:
    """Return what this user says of a reply, or of the whole conversation."""
    if message_id is None:
        return session.get(OutcomeTable, (conversation_id, user_id))
    return session.get(ScoreTable, (message_id, user_id))


def _waiting_note(session: Session, user_id: int, message_id: int | None) -> str:
    if message_id is None:
        return ""
    row = session.get(PendingNoteTable, (message_id, user_id))
    return "" if row is None else row.note


def _apply_state(session: Session, event: EventTable, state: ReviewState) -> None:
    row = session.get(ReviewTable, (event.conversation_id, event.user_id))
    if row is None:
        session.add(
            ReviewTable(conversation_id=event.conversation_id, user_id=event.user_id, state=state)
        )
    else:
        row.state, row.updated_at = state, now()


def _apply_score(session: Session, event: EventTable) -> None:
    row = own_score(session, event.user_id, event.conversation_id, event.message_id)
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


def _apply_waiting_note(session: Session, event: EventTable) -> None:
    """Keep a note that has no score (yet), until there is one."""
    if event.message_id is None:
        return
    row = session.get(PendingNoteTable, (event.message_id, event.user_id))
    note = event.new_note if event.new_value is None else ""
    if row is not None and note:
        row.note = note
    elif row is not None:
        session.delete(row)
    elif note:
        session.add(PendingNoteTable(message_id=event.message_id, user_id=event.user_id, note=note))


def _apply_decision(session: Session, event: EventTable) -> None:
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
