"""The log of what people said."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from db.enums import ReviewState


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEvent:
    """One entry of the append-only log of changes.

    Attributes:
        user_id: Whose score or queue it is.
        message_id: The scored turn; None if the conversation as a whole was scored.
        old_value: Value before the change; None if there was no score.
        new_value: Value after the change; None if the score was cleared.
        adjudicates: Whether it changed the turn's decided score, not that person's own.
        old_state: Where the conversation stood in the person's queue, if that is what changed.
        new_state: Where it stands since; None if a score changed.
        is_undo: Whether it took an earlier change back.
    """

    id: int
    user_id: int
    conversation_id: int
    message_id: int | None
    old_value: float | None
    new_value: float | None
    old_note: str
    new_note: str
    at: datetime
    adjudicates: bool = False
    old_state: ReviewState | None = None
    new_state: ReviewState | None = None
    is_undo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTurn:
    """One assistant turn and the asking person's own score of it, None if there is none."""

    message_id: int
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChange:
    """One line of a turn's history, in words that a page can show.

    Attributes:
        who: Whose score it is; for a new text, who wrote it ("" if nobody knows any more).
        changed_by: Who changed it where that is not the rater; else "".
        old_text: The former text, if what changed is the message itself.
        scores_kept: Whether the scores were said to hold for the new text, too.
    """

    at: datetime
    who: str
    old_value: float | None = None
    new_value: float | None = None
    note: str = ""
    adjudicates: bool = False
    is_undo: bool = False
    is_redo: bool = False
    changed_by: str = ""
    old_text: str | None = None
    scores_kept: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How one person's labelling goes.

    Attributes:
        since: Since when `scored` counts.
        scored: Turns scored by hand since then.
        seconds_per_turn: Median time between two scores of late, pauses left out; None if
            there are too few to tell.
    """

    since: datetime
    scored: int
    seconds_per_turn: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """How many conversations and turns a person's queue holds.

    Attributes:
        conversations: How many there are in each review state.
        turns: Assistant turns in all of them.
        scored_turns: How many of these the person has scored.
        left: Turns without a score in the open ones.
    """

    conversations: Mapping[ReviewState, int]
    turns: int
    scored_turns: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one person was asked to score.

    Attributes:
        assigned: Conversations.
        handled: How many of them they have marked done, skipped or flagged.
    """

    rater: str
    assigned: int
    handled: int
