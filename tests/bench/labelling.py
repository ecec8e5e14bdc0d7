"""The label page in a real browser, with few and with many conversations; no torch here.

Two servers of the app, one on a database with FEW conversations and one with MANY, are asked by
turns. In each round the page is opened from another one, conversations are gone through with the
keyboard, and turns are scored. What a person waits for is timed in the browser; when a score is in
the database, another connection to it tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.bench.children import in_child
from tests.bench.stored import read_figures
from tests.bench.table import markdown
from tests.bench.targets import Target

FEW, MANY = 100, 10_000
"""Conversations in the two databases."""

TURNS = 6
"""Assistant turns of each conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTimes:
    """Medians with one database, in milliseconds.

    Attributes:
        open_ms: From the click on "Label" on another page until a conversation of the queue shows.
        next_ms: From the key until the next conversation shows.
        saved_ms: From the key until "saved" shows.
        stored_ms: From the key until the score is in the database.
        keys: How many scores were given.
    """

    open_ms: float
    next_ms: float
    saved_ms: float
    stored_ms: float
    keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingResults:
    """What was measured."""

    few: LabelTimes
    many: LabelTimes

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `dataclasses.asdict` gave."""
        return read_figures(
            cls, {size: read_figures(LabelTimes, times) for size, times in data.items()}
        )


def measure_labelling() -> LabellingResults:
    """Measure all of it, in a process of its own; it needs Chromium."""
    return LabellingResults.from_json(in_child("labelling", "times"))


def labelling_targets(results: LabellingResults) -> list[Target]:
    """Return what labelling must reach, beside what was measured."""
    few, many = results.few, results.many
    sizes = f"{MANY:,} conversations over {FEW}"
    return [
        Target(f"opening the queue, {sizes}", 2, many.open_ms / few.open_ms, is_least=False),
        Target(f"next conversation, {sizes}", 2, many.next_ms / few.next_ms, is_least=False),
        Target(f"saving a score, {sizes}", 2, many.saved_ms / few.saved_ms, is_least=False),
        Target(
            f"score key to stored, {MANY:,} conversations, median of {many.keys} keys (ms)",
            150,
            many.stored_ms,
            form="{:.0f}",
            is_least=False,
        ),
    ]


def labelling_table(results: LabellingResults) -> str:
    """Return the times as a table."""
    few, many = results.few, results.many
    rows = [
        ["opening the queue", *_ms(few.open_ms, many.open_ms)],
        ["next conversation", *_ms(few.next_ms, many.next_ms)],
        ['score key to "saved"', *_ms(few.saved_ms, many.saved_ms)],
        ["score key to stored", *_ms(few.stored_ms, many.stored_ms)],
    ]
    return markdown(("ms, median", f"{FEW} conversations", f"{MANY:,}"), rows)


def _ms(*values: float) -> list[str]:
    return [f"{value:.0f}" for value in values]
