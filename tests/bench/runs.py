"""What a live run costs those who look at it, and what being recorded costs the run; no torch here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tests.bench.children import in_child
from tests.bench.stored import read_figures
from tests.bench.table import markdown
from tests.bench.targets import Target

FEW_ROWS, MANY_ROWS = 500, 50_000
"""Rows of turns' figures on record at a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """What was measured.

    Attributes:
        few_rows_s: Seconds of a look at a run with FEW_ROWS, median.
        many_rows_s: Seconds of a look at a run with MANY_ROWS, median.
        start_s: Seconds of the server from Start until the page has the run.
        stop_s: Seconds of the server from Stop until the page has the stop acknowledged.
        start_click_s: Seconds in the browser from the click on Start until the run's page is there.
        stop_click_s: Seconds in the browser from the click on Stop until the page says so.
        steps_s: Seconds that the steps of a run took together.
        loop_s: Seconds that its loop spent in the recorder.
        thread_s: Processor seconds of the recorder's thread.
    """

    few_rows_s: float
    many_rows_s: float
    start_s: float
    stop_s: float
    start_click_s: float
    stop_click_s: float
    steps_s: float
    loop_s: float
    thread_s: float

    @property
    def recording_share(self) -> float:
        """The share of the steps' time that recording took at most."""
        return (self.loop_s + self.thread_s) / self.steps_s

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `dataclasses.asdict` gave."""
        return read_figures(cls, data)


def measure_runs() -> RunResults:
    """Measure all of it, each part in a process of its own."""
    return RunResults(
        **in_child("runs", "polls"), **in_child("runs", "recording"), **in_child("runs", "pages")
    )


def run_targets(results: RunResults) -> list[Target]:
    """Return what runs must reach, beside what was measured."""
    return [
        Target(
            f"a look at a live run, {MANY_ROWS:,} rows over {FEW_ROWS:,}",
            3,
            results.many_rows_s / results.few_rows_s,
            is_least=False,
        ),
        Target(
            "share of a run of 100 steps that recording and heartbeat take",
            0.02,
            results.recording_share,
            form="{:.2%}",
            is_least=False,
        ),
        Target(
            "click on Start until the run's page is there (s)",
            2,
            results.start_click_s,
            is_least=False,
        ),
        Target("stop, until the server acknowledges it (s)", 0.1, results.stop_s, is_least=False),
        Target("click on Stop until the page says so (s)", 1, results.stop_click_s, is_least=False),
    ]


def runs_table(results: RunResults) -> str:
    """Return the times as a table."""
    rows = [
        [f"a look, {FEW_ROWS:,} rows", _ms(results.few_rows_s)],
        [f"a look, {MANY_ROWS:,} rows", _ms(results.many_rows_s)],
        ["start, server", _ms(results.start_s)],
        ["start, browser", _ms(results.start_click_s)],
        ["stop acknowledged, server", _ms(results.stop_s)],
        ["stop acknowledged, browser", _ms(results.stop_click_s)],
        ["recorder in the loop, 100 steps", _ms(results.loop_s)],
        ["recorder's thread, 100 steps", _ms(results.thread_s)],
        ["the 100 steps", _ms(results.steps_s)],
    ]
    return markdown(("", "ms"), rows)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}"
