"""Which conversation and turn a rater is at.

The address tells it to reloads, bookmarks and colleagues, but a key pressed while the page is being
redrawn arrives with the address of before. So while the page is open the session knows the place,
and the address follows.
"""

from dataclasses import dataclass

from app import address, state


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation, and its marked assistant turn counted from 0; None for the one to score."""

    conversation_id: int
    turn: int | None = None


PLACE: state.Slot[Place | None] = state.Slot("label.place", lambda: None)


def place() -> Place | None:
    """Return where the rater is: what the session knows, else what the address says."""
    known = PLACE.get()
    if known is not None:
        return known
    conversation_id = address.conversation_id()
    return None if conversation_id is None else Place(conversation_id, address.turn())


def go_to(there: Place) -> None:
    """Be there, and let the address say so."""
    PLACE.set(there)
    if address.conversation_id() != there.conversation_id:
        address.open_conversation(there.conversation_id)
    if address.turn() != there.turn:
        address.open_turn(there.turn)
