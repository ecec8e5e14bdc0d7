"""Where a run's figures go: to files in its folder, and for runs of the app to the database too."""

import json
import math
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Protocol, TextIO

from db import commands
from db.engine import Database
from db.errors import StorageError
from db.records import StepMetric, TurnMetric
from trainer.runs.folder import write_text

HEARTBEAT_S = 5.0
"""How often a run of the app says that it lives, whatever it computes meanwhile."""


class Recorder(Protocol):
    """What the training loop tells the world, and the one thing it asks: whether to stop."""

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Record turns that have just been through the model."""
        ...

    def step(self, row: StepMetric) -> None:
        """Record an optimiser step."""
        ...

    def rewind(self, step: int) -> None:
        """Forget everything after an optimiser step (-1: everything): the run resumes there."""
        ...

    def progress(self, share: float, message: str) -> bool:
        """Say how far the run is (0 to 1) and what it does; return whether it has to stop."""
        ...

    def note(self, text: str) -> None:
        """Put something worth knowing into the log."""
        ...


class FileRecorder:
    """Writes `metrics.jsonl`, one line a turn and epoch, and prints progress."""

    def __init__(self, metrics: Path, *, output: TextIO | None = None) -> None:
        """Append to `metrics`; print one line a step to `output` (standard error if None)."""
        self._metrics = metrics
        self._output = output or sys.stderr
        self._message = ""
        self._stop = threading.Event()

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Append the rows, each as one JSON object."""
        with self._metrics.open("a", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(asdict(row)) + "\n")

    def step(self, row: StepMetric) -> None:
        """Print the step's figures, and see that the rows of its turns survive a power cut.

        A checkpoint that follows must never know more steps than the metrics do.
        """
        with self._metrics.open("a") as file:
            os.fsync(file.fileno())
        self._print(
            f"epoch {row.epoch + 1} step {row.step + 1}: loss {row.loss:+.4f} a token, "
            f"KL {row.kl:.4f}, gradient norm {row.grad_norm:.3f}, {row.tokens_per_s:.0f} tokens/s"
        )

    def rewind(self, step: int) -> None:
        """Drop the lines after `step`, and a last line that a crash cut short."""
        if not self._metrics.exists():
            return
        kept = [
            line
            for line in self._metrics.read_text(encoding="utf-8").splitlines(keepends=True)
            if _step_of(line) <= step
        ]
        write_text(self._metrics, "".join(kept))

    def progress(self, share: float, message: str) -> bool:
        """Print the message when it changes; return whether `stop` was called."""
        if message != self._message:
            self._message = message
            self._print(f"{share:4.0%}  {message}")
        return self._stop.is_set()

    def note(self, text: str) -> None:
        """Print the text."""
        self._print(f"note: {text}")

    def stop(self) -> None:
        """Make the next `progress` ask for a stop; may be called from a signal handler."""
        self._stop.set()

    def _print(self, line: str) -> None:
        self._output.write(line + "\n")
        self._output.flush()


class DatabaseRecorder:
    """Writes to the database what a `FileRecorder` writes to files, and reads stop requests."""

    def __init__(self, database: Database, run_id: int, files: FileRecorder) -> None:
        """Record for one run."""
        self._database = database
        self._run_id = run_id
        self._files = files
        self._state = (0.0, "starting")

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Store the rows in one transaction."""
        self._files.turns(rows)
        commands.add_turn_metrics(self._database, self._run_id, list(rows))

    def step(self, row: StepMetric) -> None:
        """Store the step."""
        self._files.step(row)
        commands.add_step_metric(self._database, self._run_id, row)

    def rewind(self, step: int) -> None:
        """Delete the rows after `step`."""
        self._files.rewind(step)
        commands.discard_metrics_after(self._database, self._run_id, step)

    def progress(self, share: float, message: str) -> bool:
        """Store the progress as a heartbeat; return whether a person or a signal wants a stop."""
        self._state = (share, message)
        signalled = self._files.progress(share, message)
        return self._beat() or signalled

    def note(self, text: str) -> None:
        """Put the text into the log."""
        self._files.note(text)

    def stop(self) -> None:
        """Make the next `progress` ask for a stop; may be called from a signal handler."""
        self._files.stop()

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Beat every few seconds from a thread while the block runs, however long a pass takes."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(HEARTBEAT_S):
                with suppress(StorageError):  # a busy database: the next beat will do
                    self._beat()

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _beat(self) -> bool:
        share, message = self._state
        return commands.heartbeat(self._database, self._run_id, progress=share, message=message)


def _step_of(line: str) -> float:
    """Return the step of a line of metrics; infinite for one that a crash cut short."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
