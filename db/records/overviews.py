"""What tables and pages show of many conversations, and how they choose them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from db.enums import ReviewState


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """One line of the conversations table.

    Attributes:
        title: The title, or the beginning of the first user message where there is none.
        turns: Number of assistant turns.
        scored_turns: How many of them have at least one score.
        mean_score: Mean over all scores of its turns, None if there are none.
    """

    id: int
    title: str
    turns: int
    scored_turns: int
    mean_score: float | None
    tags: tuple[str, ...]
    source: str
    updated_at: datetime
    archived: bool
    review: ReviewState


ScoredFilter = Literal["any", "none", "partly", "fully"]
ConversationOrder = Literal["newest", "oldest", "title", "least_scored", "random", "uncertain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations a table or queue shows, and in which order.

    Attributes:
        text: Words to look for, as typed, in title, system prompt and messages; case does not
            matter, and only the first 1000 characters count.
        tags: Only conversations that carry all of these.
        sources: Only conversations from one of these; all if empty.
        scored: How many of its turns have a score by anybody.
        review: The asking user's review state; None for any.
        archived: Whether to show the archived ones instead of the others.
        order: "least_scored" starts with the fewest scores per turn, "uncertain" with the replies
            that their own model was least sure of, "random" is another order for each person.
        run_id: Only conversations with replies that this run's adapter sampled.
        score_range: Only conversations whose mean score is in this range, ends included.
        rater: Only conversations in which the person of this name has scored a turn.
        least_raters: Only conversations of which so many people have each scored a turn, 0 for all.
        flagged: Only conversations that somebody has flagged.
        raters_wanted: Only what waits for the asking person, where each conversation should be
            finished by so many people; None for all.
    """

    text: str = ""
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    scored: ScoredFilter = "any"
    review: ReviewState | None = None
    archived: bool = False
    run_id: int | None = None
    score_range: tuple[float, float] | None = None
    rater: str = ""
    least_raters: int = 0
    flagged: bool = False
    raters_wanted: int | None = None
    order: ConversationOrder = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """What there is to filter conversations by.

    Attributes:
        runs: Number and name of the runs that replies were sampled from.
        raters: Names of the people who have scored a turn.
    """

    tags: tuple[str, ...]
    sources: tuple[str, ...]
    runs: tuple[tuple[int, str], ...]
    raters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The numbers of the home page, archived conversations left out.

    Attributes:
        scored_turns: How many of the turns have a score by anybody.
        active_runs: Runs that have a process or wait for one.
        adapters: Adapters that runs left behind.
    """

    conversations: int
    turns: int
    scored_turns: int
    runs: int
    active_runs: int
    adapters: int
