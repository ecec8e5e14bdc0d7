"""What a person labels: their queue, their scores, and what became of each turn."""

from datetime import datetime

from app.data.reading import read
from db import queries
from db.enums import ReviewState
from db.records import ConversationFilter, OwnTurn, Pace, QueueCounts, TurnChange


def has_turns() -> bool:
    """Return whether there is anything to score."""
    return read(queries.has_turns)


def next_unscored(*, user_id: int, ids: tuple[int, ...] | None = None) -> tuple[int, int] | None:
    """Return the first (conversation, message) that this person has not scored, if any."""
    return read(queries.next_unscored, user_id=user_id, ids=ids)


def queue_counts(filter: ConversationFilter, *, user_id: int) -> QueueCounts:
    """Return how many conversations and turns a person's queue holds."""
    return read(queries.queue_counts, filter, user_id=user_id)


def last_place(*, user_id: int) -> int | None:
    """Return the conversation in which this person made their latest change."""
    return read(queries.last_place, user_id=user_id)


def review_state(*, user_id: int, conversation_id: int) -> ReviewState:
    """Return where a conversation stands in a person's queue."""
    return read(queries.review_state, user_id=user_id, conversation_id=conversation_id)


def own_turns(*, user_id: int, conversation_id: int) -> tuple[OwnTurn, ...]:
    """Return a conversation's assistant turns with a person's own scores."""
    return read(queries.own_turns, user_id=user_id, conversation_id=conversation_id)


def pending_notes(*, user_id: int, conversation_id: int) -> dict[int, str]:
    """Return a person's notes that wait for a score, by message."""
    return read(queries.pending_notes, user_id=user_id, conversation_id=conversation_id)


def todays_pace(*, user_id: int) -> Pace:
    """Return how a person's labelling goes today, by this machine's clock."""
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return read(queries.pace, user_id=user_id, since=midnight)


def turn_history(message_id: int) -> list[TurnChange]:
    """Return what became of one turn, newest first."""
    return read(queries.turn_history, message_id)
