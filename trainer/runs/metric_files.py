"""The lines that a run's figures leave in its folder: written as they come, read back to mend."""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from db import commands, queries
from db.engine import Database
from db.records import StepMetric, TurnMetric
from trainer.runs.folder import RunFolder, read_lines, write_text

Row = TypeVar("Row", TurnMetric, StepMetric)


def append_rows(path: Path, rows: Sequence[TurnMetric] | Sequence[StepMetric]) -> None:
    """Append the rows, each as one JSON object; a file whose folder is gone is not made anew."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)


def flush(path: Path) -> None:
    """See that the lines survive a power cut."""
    if path.exists():
        with path.open("a") as file:
            os.fsync(file.fileno())


def rewind(path: Path, step: int) -> None:
    """Drop the lines after an optimiser step, and those that a crash or another program damaged."""
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    kept = [line for line in lines if _step_of(line) <= step]
    if kept != lines:
        write_text(path, "".join(kept))


def read_rows(path: Path, row_type: Callable[..., Row]) -> list[Row]:
    """Return the rows of a file, without lines that a crash or another program damaged."""
    return [row for row in read_lines(path, row_type) if isinstance(row.step, int)]


def restore_figures(database: Database, run_id: int, folder: RunFolder) -> int:
    """Bring figures into the database that are only in the run's files; return how many.

    The files are written first. A process that was killed, or could not reach the database, may
    have left more in them.
    """
    known = {(r.step, r.conversation, r.turn) for r in queries.turn_metrics(database, run_id)}
    turns = [
        row
        for row in read_rows(folder.metrics, TurnMetric)
        if (row.step, row.conversation, row.turn) not in known
    ]
    known_steps = {row.step for row in queries.step_metrics(database, run_id)}
    steps = [row for row in read_rows(folder.steps, StepMetric) if row.step not in known_steps]
    commands.add_turn_metrics(database, run_id, turns)
    commands.add_step_metrics(database, run_id, steps)
    return len(turns) + len(steps)


def _step_of(line: str) -> float:
    """Return the step of a line of metrics; infinite for one that cannot be read."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return math.inf
