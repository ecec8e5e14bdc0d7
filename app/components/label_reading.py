"""What a rater has before them: a score is for the text that was on the screen."""

from dataclasses import dataclass
from datetime import datetime

from app import data, state
from db.errors import DataError
from db.records import Conversation


@dataclass(frozen=True, slots=True)
class Shown:
    """A conversation as it was drawn last, and when its text had been edited by then."""

    conversation_id: int
    edited_at: datetime | None


SHOWN: state.Slot[Shown | None] = state.Slot("label.shown", lambda: None)


def keep_shown(conversation: Conversation) -> None:
    """Remember what is drawn now."""
    assert conversation.id is not None  # it comes from the database
    SHOWN.set(Shown(conversation.id, conversation.updated_at))


def require_as_read(conversation_id: int | None = None) -> None:
    """Refuse to score what has been edited since it was drawn.

    Keys that were pressed ahead, for a conversation that is not drawn yet, are let through.

    Args:
        conversation_id: Where something is to be scored; None for the conversation on the screen.

    Raises:
        DataError: if somebody has edited the conversation meanwhile.
    """
    shown = SHOWN.get()
    if shown is None or conversation_id not in (None, shown.conversation_id):
        return
    edited_at = data.edited_at(shown.conversation_id)
    if edited_at is not None and edited_at != shown.edited_at:
        raise DataError(
            "this conversation was edited while you had it before you, so nothing was scored",
            where="label page",
            remedy="It is shown anew now: read it once more, then score it.",
        )
