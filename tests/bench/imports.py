"""Bringing a file in: its time beside that of the plain way, and its memory; no torch here.

The plain way is `datasets.load_dataset("json")`, then SQLAlchemy core's bulk insert of the same
conversations, messages and scores. It checks nothing, knows no duplicates and keeps no log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.bench.children import in_child
from tests.bench.stored import read_figures
from tests.bench.table import markdown
from tests.bench.targets import Target

SMALL, LARGE = 10_000, 100_000
"""Messages in the two files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResults:
    """What was measured.

    Attributes:
        small_s: Seconds to import SMALL messages, median of the rounds.
        large_s: Seconds to import LARGE messages, median of the rounds.
        plain_s: Seconds of the plain way with LARGE messages, median of the rounds.
        times_as_fast: The plain way's time over ours, median of the rounds' pairs.
        growth_bytes: How far a fresh process grows at most while it imports LARGE messages.
        file_bytes: The size of that file.
    """

    small_s: float
    large_s: float
    plain_s: float
    times_as_fast: float
    growth_bytes: int
    file_bytes: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `dataclasses.asdict` gave."""
        return read_figures(cls, data)


def measure_imports() -> ImportResults:
    """Measure all of it, each way in a process of its own."""
    times = in_child("imports", "times")
    return ImportResults(**times, **in_child("imports", "memory"))


def import_targets(results: ImportResults) -> list[Target]:
    """Return what importing must reach, beside what was measured."""
    small_s, large_s = results.small_s / SMALL, results.large_s / LARGE
    return [
        Target(
            f"memory growth while {LARGE:,} messages are imported (MB)",
            300,
            results.growth_bytes / 1e6,
            form="{:.0f}",
            is_least=False,
        ),
        Target(
            f"time a message, {LARGE:,} messages over {SMALL:,}",
            1.3,
            large_s / small_s,
            is_least=False,
        ),
        Target(
            "times as fast as datasets and SQLAlchemy core, which check nothing",
            0.5,
            results.times_as_fast,
        ),
    ]


def imports_table(results: ImportResults) -> str:
    """Return the times as a table."""
    rows = [
        [f"import {SMALL:,} messages", f"{results.small_s:.2f}", _micro(results.small_s, SMALL)],
        [f"import {LARGE:,} messages", f"{results.large_s:.2f}", _micro(results.large_s, LARGE)],
        [f"plain way, {LARGE:,}", f"{results.plain_s:.2f}", _micro(results.plain_s, LARGE)],
    ]
    return markdown(("", "s", "µs a message"), rows)


def _micro(seconds: float, messages: int) -> str:
    return f"{1e6 * seconds / messages:.1f}"
