"""What all scores together say: distributions, raters, tags, places, lengths."""

from dataclasses import dataclass

STEPS = 20
"""Steps of a score's unit interval: distributions count in steps of 1/20 = 0.05."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCount:
    """How often one person gave about one score.

    Attributes:
        step: The score in steps of 1 / STEPS, rounded: from -20 to 20.
    """

    rater: str
    step: int
    count: int

    @property
    def value(self) -> float:
        """The score in the middle of the step."""
        return self.step / STEPS


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterSummary:
    """One person's scores of turns.

    Attributes:
        deviation: Standard deviation of the scores, None of a single one.
    """

    rater: str
    scores: int
    mean: float
    deviation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSummary:
    """The turns of the conversations with one tag; those without any are told under "".

    Attributes:
        mean: Mean over its scored turns, each as the mean of its raters; None without any.
    """

    tag: str
    conversations: int
    turns: int
    scored_turns: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSummary:
    """The turns at one place of their conversations.

    Attributes:
        turn: Assistant turn, from 0.
        mean: Mean over the scored turns, each as the mean of its raters; None without any.
    """

    turn: int
    turns: int
    scored_turns: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBand:
    """A tenth of the scored replies, by length.

    Attributes:
        shortest: Characters of its shortest reply.
        longest: Characters of its longest reply.
        mean_chars: Mean length in characters.
        mean: Mean score of its replies.
    """

    shortest: int
    longest: int
    mean_chars: float
    replies: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBias:
    """Whether longer replies get better scores.

    Attributes:
        bands: From the shortest tenth to the longest; fewer where there are few replies.
        replies: Scored replies.
        correlation: Spearman's rank correlation of length and mean score, from -1 to 1; None
            where all are alike in one of the two.
    """

    bands: tuple[LengthBand, ...]
    replies: int
    correlation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCounts:
    """How many conversations have a score on none, some or all of their turns."""

    none: int
    partly: int
    fully: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """What all scores together say."""

    counts: tuple[ScoreCount, ...]
    raters: tuple[RaterSummary, ...]
    tags: tuple[TagSummary, ...]
    positions: tuple[PositionSummary, ...]
    conversations: ScoredCounts
    length: LengthBias
