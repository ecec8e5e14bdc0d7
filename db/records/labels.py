"""The log of what people said."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEvent:
    """One entry of the append-only log of score changes.

    Attributes:
        message_id: The scored turn; None if the conversation as a whole was scored.
        old_value: Value before the change; None if there was no score.
        new_value: Value after the change; None if the score was cleared.
        adjudicates: Whether it changed the turn's decided score, not that person's own.
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
