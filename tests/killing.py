"""Runs killed with SIGKILL at chosen places, then resumed: `python -m tests.killing WORK OPTIONS`.

Each run and each resume is a process of its own, forked from this one, which has loaded torch but
computed nothing; what it executes is the command line's `main`. OPTIONS are those of `python -m trainer train`
but for its --out.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trainer.engine.training
import trainer.export
import trainer.runs.recorder
from trainer.__main__ import main
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
    "adapter-half-written": partial(kill_around, trainer.export, "write_text", 1, before=True),
}
"""Where the first process of a run dies."""

WHILE_RESUMING: dict[str, Hook] = {
    "half-a-line": partial(kill_around, trainer.runs.recorder, "write_text", 1, before=True),
    "after-an-optimiser-step": partial(kill_around, FileRecorder, "rewind", 1),
}
"""Where a second process dies as well, when it resumes what the first has left."""


def in_a_process_of_its_own(arguments: list[str], hook: Hook | None = None) -> int:
    """Run the command line in a fork and return how it ended: an exit status, or minus a signal."""
    child = os.fork()
    if child == 0:
        if hook is not None:
            hook()
        os._exit(main(arguments))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def expect(found: int, wanted: int, what: str) -> None:
    """End with words unless a process ended as it was meant to."""
    if found != wanted:
        sys.exit(f"{what}: ended with {found}, not {wanted}")


def kill_and_resume(work: Path, options: list[str]) -> None:
    """Leave in `work` one folder for the uninterrupted run and one for each place of death."""
    main(["preview", *options])  # loads and compiles once what each fork would do again
    whole = ["train", *options, "--out", str(work / "whole")]
    expect(in_a_process_of_its_own(whole), 0, "whole")
    for place, hook in PLACES.items():
        out = str(work / place)
        killed = in_a_process_of_its_own(["train", *options, "--out", out], hook)
        expect(killed, -signal.SIGKILL, place)
        if place in WHILE_RESUMING:
            killed = in_a_process_of_its_own(["resume", out], WHILE_RESUMING[place])
            expect(killed, -signal.SIGKILL, f"{place}, resumed")
        expect(in_a_process_of_its_own(["resume", out]), 0, f"{place}, resumed")


if __name__ == "__main__":
    kill_and_resume(Path(sys.argv[1]), sys.argv[2:])
