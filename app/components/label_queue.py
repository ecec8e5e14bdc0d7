"""The queue of a rater: what waits for them, in an order that stays while they work through it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app import data, state
from db.enums import ReviewState
from db.records import ConversationFilter

_LOOK_AHEAD = 50
"""So many conversations are asked about at once when the next one that still waits is sought."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The conversations of a queue as it was when it was opened.

    Scoring changes what "least scored" means and takes conversations out of "open"; so the order
    is read once, and what comes next is asked of the database again.

    Attributes:
        places: Where each of `ids` stands, counted from 0.
    """

    filter: ConversationFilter
    user_id: int
    ids: tuple[int, ...]
    places: Mapping[int, int]

    def onward(self, conversation_id: int) -> int | None:
        """Return what to do next: the next that still waits, from the last back to the first."""
        at = self.places.get(conversation_id, -1)
        others = (*self.ids[at + 1 :], *self.ids[: max(at, 0)])
        return self._first(others, self.filter)

    def neighbour(self, conversation_id: int, step: int) -> int | None:
        """Return the conversation after (1) or before (-1) one, also if it is finished by now."""
        at = self.places.get(conversation_id)
        if at is None:
            return self._first(self.ids, self.filter)
        others = self.ids[at + 1 :] if step > 0 else self.ids[:at][::-1]
        return self._first(others, replace(self.filter, review=None, raters_wanted=None))

    def _first(self, ids: Sequence[int], filter: ConversationFilter) -> int | None:
        for chunk in _chunks(ids):
            waiting = data.matching_ids(filter, chunk, user_id=self.user_id)
            found = next((id for id in chunk if id in waiting), None)
            if found is not None:
                return found
        return None


QUEUE: state.Slot[Queue | None] = state.Slot("label.queue", lambda: None)
"""The queue that is being worked through, until the page is opened anew."""


def open_queue(filter: ConversationFilter, user_id: int) -> Queue:
    """Return the queue of this filter: the one in work if it is the same, else a fresh one."""
    queue = QUEUE.get()
    if queue is None or (queue.filter, queue.user_id) != (filter, user_id):
        ids = tuple(data.conversation_ids(filter, user_id=user_id))
        places = {id: place for place, id in enumerate(ids)}
        queue = Queue(filter=filter, user_id=user_id, ids=ids, places=places)
        QUEUE.set(queue)
    return queue


def first_of(queue: Queue) -> int | None:
    """Return where to begin: where the rater left off, else what lacks a score, else the first."""
    last = data.last_place(user_id=queue.user_id)
    ids = queue.ids
    if last is not None and last in queue.places:
        at = queue.places[last]
        ids = (*ids[at:], *ids[:at])
    missing = data.next_unscored(user_id=queue.user_id, ids=ids)
    if missing is not None:
        return missing[0]
    return ids[0] if ids else None


def is_open_queue(filter: ConversationFilter) -> bool:
    """Return whether a queue holds what is still to be done."""
    return filter.review is ReviewState.OPEN


def _chunks(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(ids), _LOOK_AHEAD):
        yield tuple(ids[start : start + _LOOK_AHEAD])
