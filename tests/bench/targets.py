"""What must be reached, beside what was measured; no torch here."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.bench.results import Results, RowTimes
from tests.bench.workloads import HUNDRED_SHORT, LONG, THOUSAND_SHORT

LONG_CONVERSATION_TOKENS = 1000

MEMORY_NOISE = 1.02
"""By so much do two processes that did the same work differ: it depends on where the allocator put
things. A process that grew with its conversations would differ by more than that by far."""


@dataclass(frozen=True, slots=True)
class Target:
    """A figure and its limit.

    Attributes:
        text: What the figure is.
        limit: What it must reach.
        measured: What it is; None if this run did not measure it.
        form: Format of both numbers.
        is_least: Whether the limit is the least allowed, else the most.
    """

    text: str
    limit: float
    measured: float | None
    form: str = "{:.2f}"
    is_least: bool = True

    @property
    def is_reached(self) -> bool | None:
        """Whether the limit is kept; None if the figure was not measured."""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.is_least else self.measured <= self.limit


def targets(results: Results) -> list[Target]:
    """Return every target in the order of the requirement."""

    def figure(name: str, of: Callable[[RowTimes], float]) -> float | None:
        row = results.row(name)
        return None if row is None else of(row)

    def worst(values: list[float], choose: Callable[[list[float]], float]) -> float | None:
        return choose(values) if values else None

    def speed(name: str, baseline: str, limit: float) -> Target:
        found = figure(name, lambda row: row.times_as_fast[baseline])
        return Target(f"{name}: times as fast as a turn, {baseline} logits", limit, found)

    rows, peaks = results.rows, results.peak_bytes
    two = figure("2 turns", lambda row: row.token_s)
    sixteen = figure("16 turns", lambda row: row.token_s)
    chains = [row for row in rows if row.is_one_conversation]
    long_shares = [
        row.share_of_bound for row in chains if row.distinct_tokens >= LONG_CONVERSATION_TOKENS
    ]
    short, many = peaks.get(HUNDRED_SHORT), peaks.get(THOUSAND_SHORT)
    return [
        speed("8 turns", "full", 4.5),
        speed("8 turns", "selective", 3.3),
        speed("16 turns", "full", 10),
        speed("16 turns", "selective", 6),
        Target(
            "tokens computed over distinct tokens, any line",
            1.02,
            worst([row.computed_tokens / row.distinct_tokens for row in rows], max),
            is_least=False,
        ),
        Target(
            "time a distinct token, 16 turns over 2 turns",
            1.6,
            sixteen / two if sixteen and two else None,
            is_least=False,
        ),
        Target(
            f"share of the bound, conversations of {LONG_CONVERSATION_TOKENS:,} tokens and more",
            0.60,
            worst(long_shares, min),
            form="{:.1%}",
        ),
        Target(
            "share of the bound, 64 × the seed's two short conversations",
            0.50,
            figure("seed x 64", lambda row: row.share_of_bound),
            form="{:.1%}",
        ),
        Target(
            "peak memory, a conversation of 4,000 tokens (GB)",
            6,
            peaks[LONG] / 1e9 if LONG in peaks else None,
            is_least=False,
        ),
        Target(
            "peak memory, 1,000 short conversations over 100",
            MEMORY_NOISE,
            many / short if many and short else None,
            form="{:.3f}",
            is_least=False,
        ),
        Target(
            "times as fast as a padded batch, any line",
            1.0,
            worst([row.times_as_fast["padded"] for row in rows], min),
        ),
    ]
