"""Deaths by SIGKILL at chosen places of a run: hooks for the forks of `tests.forking`."""

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trainer.engine.training
import trainer.export.adapter
import trainer.runs.metric_files
from trainer.engine.gradients import BatchRunner
from trainer.engine.optimizer import Optimizer
from trainer.runs.recorder import FileRecorder

Hook = Callable[[], None]


def kill_this_process() -> None:
    """Die as by `kill -9`: nothing is flushed, no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_around(owner: Any, name: str, call: int, *, before: bool = False) -> None:
    """Replace a function by one that kills the process at its n-th call, counted from 1."""
    whole, calls = getattr(owner, name), 0

    def replacement(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == call:
            kill_this_process()
        result = whole(*args, **kwargs)
        if calls == call:
            kill_this_process()
        return result

    setattr(owner, name, replacement)


def kill_in_half_a_line() -> None:
    """Write the fifth call's rows up to the middle of a line."""
    calls = 0
    whole = FileRecorder.turns

    def turns(self: FileRecorder, rows: Any) -> None:
        nonlocal calls
        calls += 1
        whole(self, rows)
        if calls == 5:
            metrics = self._metrics
            os.truncate(metrics, metrics.stat().st_size - 40)
            kill_this_process()

    FileRecorder.turns = turns


def kill_while_an_old_checkpoint_is_deleted() -> None:
    """Delete one of its files, then die."""
    whole = shutil.rmtree

    def rmtree(path: str | Path, **options: Any) -> None:
        if Path(path).name.isdigit():
            next(file for file in Path(path).rglob("*") if file.is_file()).unlink()
            kill_this_process()
        whole(path, **options)

    shutil.rmtree = rmtree


PLACES: dict[str, Hook] = {
    "before-any-checkpoint": partial(kill_around, BatchRunner, "run", 7),
    "half-a-line": kill_in_half_a_line,
    "before-an-optimiser-step": partial(kill_around, Optimizer, "step", 4, before=True),
    "after-an-optimiser-step": partial(kill_around, Optimizer, "step", 5),
    "checkpoint-half-written": partial(kill_around, trainer.engine.training, "write_state", 2),
    "old-checkpoint-half-deleted": kill_while_an_old_checkpoint_is_deleted,
    "adapter-half-written": partial(
        kill_around, trainer.export.adapter, "write_text", 1, before=True
    ),
}
"""Where the first process of a run dies."""

WHILE_RESUMING: dict[str, Hook] = {
    "half-a-line": partial(kill_around, trainer.runs.metric_files, "write_text", 1, before=True),
    "after-an-optimiser-step": partial(kill_around, FileRecorder, "rewind", 1),
}
"""Where a second process dies as well, when it resumes what the first has left."""

HOOKS = {**PLACES, **{f"{place}, resuming": hook for place, hook in WHILE_RESUMING.items()}}
"""For `tests.forking`."""
