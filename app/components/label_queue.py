"""Which conversations wait for a rater, and the way from one to the next."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import streamlit as st

from app import data
from db.enums import ReviewState
from db.records import ConversationFilter, User

QUEUES: dict[str, ConversationFilter] = {
    "Open": ConversationFilter(review=ReviewState.OPEN, order="oldest"),
    "Without a score": ConversationFilter(scored="none", order="oldest"),
    "Partly scored": ConversationFilter(scored="partly", order="oldest"),
    "Flagged": ConversationFilter(review=ReviewState.FLAGGED, order="oldest"),
    "Skipped": ConversationFilter(review=ReviewState.SKIPPED, order="oldest"),
    "Done": ConversationFilter(review=ReviewState.DONE, order="oldest"),
    "All": ConversationFilter(order="oldest"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation stands in the queue; it may have left it by being finished.

    Attributes:
        position: Counted from 1; None if the conversation is not in the queue (any more).
        onward: Where finishing it leads: to the next one, from the last back to the first.
    """

    position: int | None
    size: int
    previous: int | None
    next: int | None
    onward: int | None


def choose_queue(user: User) -> list[int]:
    """Let the rater choose a queue (it is kept in the address); return its conversations."""
    name = st.selectbox(
        "Queue",
        list(QUEUES),
        key="queue",
        bind="query-params",
        help="Open: neither done, skipped nor flagged.",
    )
    return data.conversation_ids(QUEUES[name], user_id=user.id)


def place_of(conversation_id: int, queue: list[int]) -> Place:
    """Return where a conversation stands in a queue ordered by age (that is, by id)."""
    before, after = bisect_left(queue, conversation_id), bisect_right(queue, conversation_id)
    following = queue[after] if after < len(queue) else None
    others = (other for other in queue if other != conversation_id)
    return Place(
        position=before + 1 if after > before else None,
        size=len(queue),
        previous=queue[before - 1] if before > 0 else None,
        next=following,
        onward=following if following is not None else next(others, None),
    )
