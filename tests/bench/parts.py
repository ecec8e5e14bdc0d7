"""What is measured beside the engine: each part with its children's steps, its table, its targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from db.settings import read_settings
from tests.bench.imports import ImportResults, import_targets, imports_table, measure_imports
from tests.bench.labelling import (
    LabellingResults,
    labelling_table,
    labelling_targets,
    measure_labelling,
)
from tests.bench.runs import RunResults, measure_runs, run_targets, runs_table
from tests.bench.serving import ServingResults, measure_serving, serving_table, serving_targets
from tests.bench.table import targets_table
from tests.bench.targets import Target


@dataclass(frozen=True)
class Part:
    """A part of the product whose figures stand in a table of their own.

    Attributes:
        about: What is measured, for the command line.
        steps: What its child processes are asked for.
        in_this_process: Does one of the steps.
        measure: Does all of them, each in a child process, and returns the results.
        read: Returns the results that `bench.json` holds.
        table: Returns their table.
        targets: Returns what they must reach.
    """

    about: str
    steps: tuple[str, ...]
    in_this_process: Callable[[str], Any]
    measure: Callable[[], Any]
    read: Callable[[dict[str, Any]], Any]
    table: Callable[[Any], str]
    targets: Callable[[Any], Sequence[Target]]

    def text(self, results: Any) -> str:
        """Return the results and what they had to reach as text."""
        return f"{self.table(results)}\n\n{targets_table(self.targets(results))}"

    def text_of(self, data: dict[str, Any]) -> str:
        """Return what `bench.json` holds as text.

        Raises:
            OldFiguresError: if it is of another version of the benchmark.
        """
        return self.text(self.read(data))


# The steps import what they need: the parent process, which only starts children, stays small.


def _imports(step: str) -> Any:
    from tests.bench import import_times  # noqa: PLC0415

    return import_times.times() if step == "times" else import_times.memory()


def _serving(step: str) -> Any:
    from tests.bench.serving_times import serving_times  # noqa: PLC0415

    return serving_times(read_settings())


def _runs(step: str) -> Any:
    if step == "polls":
        from tests.bench.polls import polls  # noqa: PLC0415

        return polls()
    if step == "pages":
        from tests.bench.run_pages import run_pages  # noqa: PLC0415

        return run_pages(read_settings())
    from tests.bench.recording import recording  # noqa: PLC0415

    return recording(read_settings())


def _labelling(step: str) -> Any:
    from tests.bench.labelling_times import labelling_times  # noqa: PLC0415

    return labelling_times()


PARTS = {
    "imports": Part(
        about="measure only how files come in",
        steps=("times", "memory"),
        in_this_process=_imports,
        measure=measure_imports,
        read=ImportResults.from_json,
        table=imports_table,
        targets=import_targets,
    ),
    "serving": Part(
        about="measure only the chat endpoint",
        steps=("times",),
        in_this_process=_serving,
        measure=measure_serving,
        read=ServingResults.from_json,
        table=serving_table,
        targets=serving_targets,
    ),
    "runs": Part(
        about="measure only what runs cost their viewers and themselves",
        steps=("polls", "recording", "pages"),
        in_this_process=_runs,
        measure=measure_runs,
        read=RunResults.from_json,
        table=runs_table,
        targets=run_targets,
    ),
    "labelling": Part(
        about="measure only the label page",
        steps=("times",),
        in_this_process=_labelling,
        measure=measure_labelling,
        read=LabellingResults.from_json,
        table=labelling_table,
        targets=labelling_targets,
    ),
}
"""By name, in the order in which they are measured."""
