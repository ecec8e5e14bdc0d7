"""Which conversation and turn a rater is at.

The address tells it to reloads, bookmarks and colleagues, but what a browser sends while the page
is being redrawn, or as it connects again, comes with the address of before. So while the page is
open the session knows the place, and the address follows.
"""

import time
from dataclasses import dataclass, field

from app import address, state

STALE_S = 6.0
"""A place that was left by a key or click less than this ago is not gone back to by an address."""


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation, and its marked assistant turn counted from 0; None for the one to score."""

    conversation_id: int
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the rater is, and when (`time.monotonic`) they left the places before."""

    here: Place | None = None
    left_at: dict[Place, float] = field(default_factory=dict)


WHEREABOUTS: state.Slot[Whereabouts] = state.Slot("label.place", Whereabouts)


def place() -> Place | None:
    """Return where the rater is, None if neither session nor address knows."""
    return WHEREABOUTS.get().here or _addressed()


def arrive() -> None:
    """Go where the address says, as the page is opened or the browser goes back."""
    known, there = WHEREABOUTS.get(), _addressed()
    left_at = None if there is None else known.left_at.get(there)
    if left_at is None or time.monotonic() - left_at > STALE_S:
        WHEREABOUTS.set(Whereabouts(here=there))


def go_to(there: Place) -> None:
    """Be there, and let the address say so."""
    known, now = WHEREABOUTS.get(), time.monotonic()
    if known.here != there:
        left_at = {place: at for place, at in known.left_at.items() if now - at <= STALE_S}
        if known.here is not None:
            left_at[known.here] = now
        left_at.pop(there, None)
        WHEREABOUTS.set(Whereabouts(here=there, left_at=left_at))
    if address.conversation_id() != there.conversation_id:
        address.open_conversation(there.conversation_id)
    if address.turn() != there.turn:
        address.open_turn(there.turn)


def _addressed() -> Place | None:
    conversation_id = address.conversation_id()
    return None if conversation_id is None else Place(conversation_id, address.turn())
