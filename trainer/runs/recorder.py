"""What the training loop tells the world, and the recorder that writes it to a run's folder."""

import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TextIO

from db.records import StepMetric, TurnMetric
from trainer.runs import metric_files
from trainer.runs.events import EventFile
from trainer.runs.folder import RunFolder


class Recorder(Protocol):
    """What the training loop tells the world, and the one thing it asks: whether to stop."""

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Record turns that have just been through the model."""
        ...

    def step(self, row: StepMetric) -> None:
        """Record an optimiser step."""
        ...

    def settle(self) -> None:
        """See that what was recorded survives a power cut: a checkpoint is about to build on it."""
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
    """Writes the lines of a run's folder, its TensorBoard file, and prints progress."""

    def __init__(self, metrics: Path, *, output: TextIO | None = None) -> None:
        """Append to `metrics` and the files beside it.

        Args:
            metrics: The file for turns; that for steps and the folder for TensorBoard lie beside it.
            output: Where a line a step is printed; standard error if None.
        """
        self.folder = RunFolder(metrics.parent)
        self._metrics = metrics
        self._events = EventFile(self.folder.events)
        self._turns_of_step: list[TurnMetric] = []
        self._not_in_events: deque[tuple[StepMetric, list[TurnMetric]]] = deque()
        self._writing_events = threading.Lock()
        self._output = output or sys.stderr
        self._message = ""
        self._stop = threading.Event()

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Append the rows, each as one JSON object."""
        metric_files.append_rows(self._metrics, rows)
        self._turns_of_step += rows

    def step(self, row: StepMetric) -> None:
        """Append and print the step's figures."""
        metric_files.append_rows(self.folder.steps, [row])
        self._not_in_events.append((row, self._turns_of_step))
        self._turns_of_step = []
        norm = "not told" if row.grad_norm is None else f"{row.grad_norm:.3f}"
        self._print(
            f"epoch {row.epoch + 1} step {row.step + 1}: loss {row.loss:+.4f} a token, "
            f"KL {row.kl:.4f}, gradient norm {norm}, {row.tokens_per_s:.0f} tokens/s"
        )

    def settle(self) -> None:
        """Flush the lines to disk; a checkpoint must never know more steps than they do."""
        metric_files.flush(self._metrics)
        metric_files.flush(self.folder.steps)
        self.write_events()

    def write_events(self) -> None:
        """Write what TensorBoard does not see yet; another thread may do so, off the loop's time."""
        with self._writing_events, suppress(OSError):  # a chart elsewhere is not worth a run
            while self._not_in_events:
                self._events.add(*self._not_in_events.popleft())

    def rewind(self, step: int) -> None:
        """Drop the lines after `step`."""
        metric_files.rewind(self._metrics, step)
        metric_files.rewind(self.folder.steps, step)
        self._turns_of_step = []
        self._not_in_events.clear()

    def progress(self, share: float, message: str) -> bool:
        """Print the message when it changes; return whether `stop` was called."""
        if message != self._message:
            self._message = message
            self._print(f"{share:4.0%}  {message}")
        return self._stop.is_set()

    def note(self, text: str) -> None:
        """Print the text."""
        self._print(f"note: {text}")

    def stop(self) -> bool:
        """Make the next `progress` ask for a stop; may be called from a signal handler.

        Returns:
            Whether that had been asked before.
        """
        asked = self._stop.is_set()
        self._stop.set()
        return asked

    def _print(self, line: str) -> None:
        self._output.write(line + "\n")
        self._output.flush()
