"""How far people agree who scored the same turns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One person's score of one turn, for measures over many of them."""

    message_id: int
    user_id: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTurn:
    """One turn that more than one person scored.

    Attributes:
        title: The conversation's, empty if it has none.
        turn: Assistant turn within the conversation, from 0.
        reply: The beginning of the reply.
        raters: How many people scored it.
        low: The lowest of their scores.
        high: The highest.
        mean: The mean.
        adjudicated: The score that was decided, None if none was.
    """

    conversation_id: int
    message_id: int
    title: str
    turn: int
    reply: str
    raters: int
    low: float
    high: float
    mean: float
    adjudicated: float | None

    @property
    def spread(self) -> float:
        """How far apart the highest and the lowest score are, from 0 to 2."""
        return self.high - self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadCount:
    """How many shared turns have about one spread.

    Attributes:
        spread: Highest minus lowest score, rounded to a twentieth.
    """

    spread: float
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterPair:
    """Two people on the turns that both of them scored.

    Attributes:
        apart: Mean distance of their scores, without sign.
        higher: Mean of the first one's score minus the second one's.
    """

    first: str
    second: str
    turns: int
    apart: float
    higher: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RatersOfTurns:
    """How many turns have been scored by so many people."""

    raters: int
    turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementFigures:
    """What agreement is told by.

    Attributes:
        ratings: All scores of the shared turns, or of a chance sample of these turns.
        coverage: How many turns have been scored by so many people.
        spreads: How many shared turns have each spread.
        pairs: Each two people on the turns that both scored.
    """

    ratings: tuple[Rating, ...]
    coverage: tuple[RatersOfTurns, ...]
    spreads: tuple[SpreadCount, ...]
    pairs: tuple[RaterPair, ...]
