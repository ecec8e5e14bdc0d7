"""What a rater can do, as widget callbacks: each one is in the database when it returns."""

from app import address, data, state
from app.components.errors import guarded
from app.components.format import score_text
from db import commands
from db.enums import ReviewState
from db.records import Conversation, Message, ScoreEvent, User


def own_score(message: Message, user: User) -> tuple[float | None, str]:
    """Return this person's score and note of a turn; (None, "") if there is none."""
    return next(((s.value, s.note) for s in message.scores if s.rater == user.name), (None, ""))


def own_outcome(conversation: Conversation, user: User) -> tuple[float | None, str]:
    """Return this person's score and note of the whole conversation."""
    mine = (s for s in conversation.outcomes if s.rater == user.name)
    return next(((s.value, s.note) for s in mine), (None, ""))


@guarded
def score_turn(user: User, message_id: int, focus: int, value: float | None) -> None:
    """Store or clear a turn's score, then look at turn `focus`."""
    data.write(commands.set_score, user_id=user.id, message_id=message_id, value=value)
    address.open_turn(focus)


@guarded
def note_turn(user: User, message_id: int, focus: int, value: float, note: str) -> None:
    """Store a turn's note beside its score."""
    data.write(commands.set_score, user_id=user.id, message_id=message_id, value=value, note=note)
    address.open_turn(focus)


@guarded
def score_outcome(user: User, conversation_id: int, value: float | None) -> None:
    """Store or clear the score of a whole conversation."""
    data.write(commands.set_outcome, user_id=user.id, conversation_id=conversation_id, value=value)


@guarded
def note_outcome(user: User, conversation_id: int, value: float, note: str) -> None:
    """Store the note of a whole conversation beside its score."""
    data.write(
        commands.set_outcome,
        user_id=user.id,
        conversation_id=conversation_id,
        value=value,
        note=note,
    )


@guarded
def undo(user: User) -> None:
    """Take back this person's latest change, and show the place where it happened."""
    events = data.write(commands.undo, user_id=user.id)
    if not events:
        state.NOTICE.set("There is nothing to undo.")
        return
    event = events[-1]
    conversation = data.conversation(event.conversation_id)
    if event.conversation_id != address.conversation_id():
        address.open_conversation(event.conversation_id)
    turns = [message.id for message in conversation.assistant_messages]
    if event.message_id in turns:
        address.open_turn(turns.index(event.message_id))
    state.NOTICE.set(_undone(event, turns))


@guarded
def review(user: User, conversation_id: int, stance: ReviewState, go_to: int | None) -> None:
    """Store where a conversation stands in the queue, then open `go_to` if it is given."""
    data.write(commands.set_review, user_id=user.id, conversation_id=conversation_id, state=stance)
    if go_to is not None:
        address.open_conversation(go_to)


@guarded
def next_unscored(user: User, conversation_id: int, message_id: int | None) -> None:
    """Open the next turn without a score, in this conversation or a later one."""
    del conversation_id, message_id
    found = data.next_unscored(user_id=user.id)
    if found is None:
        state.NOTICE.set("No open conversation has a turn without a score.")
        return
    address.open_conversation(found[0])
    turns = [message.id for message in data.conversation(found[0]).assistant_messages]
    address.open_turn(turns.index(found[1]))


def _undone(event: ScoreEvent, turns: list[int | None]) -> str:
    if event.message_id is None:
        place = "the whole conversation"
    elif event.message_id in turns:
        place = f"turn {turns.index(event.message_id) + 1}"
    else:
        place = "a turn"
    if event.old_value == event.new_value:
        return f"Undone: the note of {place} is back as it was."
    return f"Undone: {place} is back at {score_text(event.new_value)}."
