"""What happened to scores, in words."""

from collections.abc import Sequence

from app.components.label_scale import Scale
from db.records import ScoreEvent


def undone(events: Sequence[ScoreEvent], turns: Sequence[int], scale: Scale) -> str:
    """Return what an undo or redo did, as Markdown.

    Args:
        events: The changes it made.
        turns: Message ids of the turns of the conversation in which it happened.
        scale: How scores are told.
    """
    event = events[-1]
    done = "Undone" if event.is_undo else "Redone"
    if len(events) > 1:
        return f"{done}: the scores of {len(events)} turns."
    if event.new_state is not None:
        return f"{done}: the conversation is {event.new_state.value}."
    if event.message_id is None:
        place = "the whole conversation"
    elif event.message_id in turns:
        place = f"turn {turns.index(event.message_id) + 1}"
    else:
        place = "a turn"
    if event.old_value == event.new_value:
        return f"{done}: the note of {place}."
    return f"{done}: {place} is {scale.text(event.new_value)}."
