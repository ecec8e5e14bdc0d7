"""What two ranks do together, as a module that `accelerate launch` starts twice.

Each scenario leaves what it found in the folder that the command line names; the test beside
`tests/trainer/test_ranks.py` reads it. The last one kills a rank.
"""

import errno
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from db.records import StepMetric
from db.settings import read_settings
from trainer.__main__ import main as command_line
from trainer.engine.gradients import BatchRunner
from trainer.engine.ranks import Ranks, join_ranks
from trainer.errors import NotFiniteError, TrainerError
from trainer.loop import Ending
from trainer.runs.folder import RunFolder
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder, stop_on_signals


class StoppingRecorder(FileRecorder):
    """Asks for a stop, or meets a full disk, once two steps have been taken."""

    def __init__(self, metrics: Path, *, disk_full: bool = False) -> None:
        super().__init__(metrics, output=io.StringIO())
        self._disk_full = disk_full

    def step(self, row: StepMetric) -> None:
        if row.step == 1:
            if self._disk_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.stop()


@contextmanager
def broken_pass(ranks: Ranks, fail: Callable[[], None]) -> Any:
    """Let the second rank fail in its share of the third training pass that has one for it."""
    whole, passes = BatchRunner.run, 0

    def run(self: BatchRunner, data: Sequence[Any], *args: Any, backward: bool) -> Any:
        nonlocal passes
        passes += bool(data) and backward
        if ranks.index == 1 and passes == 3:
            fail()
        return whole(self, data, *args, backward=backward)

    BatchRunner.run = run
    try:
        yield
    finally:
        BatchRunner.run = whole


def error_of(folder: RunFolder, recorder: FileRecorder, ranks: Ranks) -> dict[str, str]:
    """Return the error with which a run ends on this rank."""
    try:
        run_folder(folder, recorder, read_settings(), ranks)
    except (TrainerError, OSError) as error:
        return {"kind": type(error).__name__, "text": str(error)}
    raise AssertionError("the run was meant to fail")


def main(work: Path, run_id: str, options: list[str]) -> None:
    """Play every scenario.

    Args:
        work: Where the runs have their folders.
        run_id: A failed run of the database, to be resumed.
        options: Those of `python -m trainer train` but for its --out.
    """
    ranks = join_ranks("cpu")
    found: dict[str, Any] = {"ranks": ranks.count}
    found["exit_status"] = command_line(["train", *options, "--out", str(work / "command-line")])
    found["resume_status"] = command_line(["resume", run_id])

    def run(name: str, recorder: FileRecorder | None = None) -> Ending:
        folder = RunFolder(work / name)
        quiet = recorder or FileRecorder(folder.metrics, output=io.StringIO())
        return run_folder(folder, quiet, read_settings(), ranks)

    found["stopped"] = run("stopped", StoppingRecorder(work / "stopped" / "metrics.jsonl"))
    found["steps_before_stop"] = rows_in(work / "stopped")
    found["resumed"] = run("stopped")

    def not_a_number() -> None:
        raise NotFiniteError("the loss is not a finite number", datum=0)

    broken = RunFolder(work / "broken")
    with broken_pass(ranks, not_a_number):
        found["broken"] = error_of(broken, FileRecorder(broken.metrics), ranks)
    found["mended"] = run("broken")

    full = RunFolder(work / "full")
    found["full"] = error_of(full, StoppingRecorder(full.metrics, disk_full=True), ranks)

    record = work / f"found-{ranks.index}.json"
    record.write_text(json.dumps(found))
    with broken_pass(ranks, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        killed = RunFolder(work / "killed")
        stop_on_signals(FileRecorder(killed.metrics), ranks)  # the launcher sends SIGTERM
        found["killed"] = error_of(killed, FileRecorder(killed.metrics), ranks)
    record.write_text(json.dumps(found))
    sys.exit(1)


def rows_in(folder: Path) -> int:
    """Return how many steps have rows in the metrics."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return len({json.loads(line)["step"] for line in lines})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
