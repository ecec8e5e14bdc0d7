"""What a rater writes and scores with the mouse, as widget callbacks beside the keys' actions.

Each is in the database when it returns.
"""

from app import data
from app.components.errors import guarded
from app.components.label_reading import require_as_read
from db import commands
from db.records import Conversation, Message, User


def own_score(message: Message, user: User) -> tuple[float | None, str]:
    """Return this person's score and note of a turn; (None, "") if there is none."""
    return next(((s.value, s.note) for s in message.scores if s.rater == user.name), (None, ""))


def own_outcome(conversation: Conversation, user: User) -> tuple[float | None, str]:
    """Return this person's score and note of the whole conversation."""
    mine = (s for s in conversation.outcomes if s.rater == user.name)
    return next(((s.value, s.note) for s in mine), (None, ""))


@guarded
def score_turn(user: User, message_id: int, value: float | None) -> None:
    """Store or clear a turn's score; the marked turn stays where it is."""
    require_as_read()
    data.write(commands.set_score, user_id=user.id, message_id=message_id, value=value)


@guarded
def note_turn(user: User, message_id: int, note: str) -> None:
    """Store a turn's note."""
    data.write(commands.set_note, user_id=user.id, message_id=message_id, note=note)


@guarded
def score_outcome(user: User, conversation_id: int, value: float | None) -> None:
    """Store or clear the score of a whole conversation."""
    require_as_read(conversation_id)
    data.write(commands.set_outcome, user_id=user.id, conversation_id=conversation_id, value=value)


@guarded
def note_outcome(user: User, conversation_id: int, note: str) -> None:
    """Store the note of a whole conversation beside its score."""
    data.write(
        commands.set_outcome_note, user_id=user.id, conversation_id=conversation_id, note=note
    )
