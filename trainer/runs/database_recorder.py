"""A run of the app: its figures go to its folder and, by a thread, to the database."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import TypeVar

from db import commands, queries
from db.engine import Database
from db.errors import StorageError
from db.records import StepMetric, TurnMetric
from trainer.runs.metric_files import restore_figures
from trainer.runs.recorder import FileRecorder
from trainer.runs.usage import Meter

T = TypeVar("T")

HEARTBEAT_S = 5.0
"""How often a run says that it lives, whatever it computes meanwhile."""

LOOK_EVERY_S = 1.0
"""How often the thread looks for a stop request."""

STORE_EVERY_S = 2.0
"""How often it stores what is new, about as often as a page looks: each time costs the loop a little."""

PATIENCE_S = 600.0
"""How long a run waits at its end for a database that cannot be written."""


def patiently(action: Callable[[], T]) -> T:
    """Do something with the database, again and again while that cannot be written.

    Raises:
        StorageError: if it still cannot after `PATIENCE_S`.
    """
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            return action()
        except StorageError:
            if time.monotonic() > give_up_at:
                raise
        time.sleep(LOOK_EVERY_S)


class DatabaseRecorder:
    """Stores what a `FileRecorder` writes, and reads stop requests, without holding the loop up.

    The files are written first. Until the database can be written its rows are kept, so a lock or
    an outage loses nothing; should the process be killed meanwhile, they are read from the files
    (`trainer.runs.metric_files.restore_figures`).
    """

    def __init__(self, database: Database, run_id: int, files: FileRecorder) -> None:
        """Record for one run, at its present attempt."""
        run = queries.run(database, run_id)
        self._database = database
        self._run_id = run_id
        self._attempt = run.attempt
        self._files = files
        self._meter = Meter(run.device)
        self._state = (run.progress, "starting")
        self._told = self._state
        self._told_at = 0.0
        self._turns: list[TurnMetric] = []
        self._steps: list[StepMetric] = []
        self._waiting = threading.Lock()  # held to touch the two lists
        self._storing = threading.Lock()  # held to store, so that rows arrive in their order
        self._stop = threading.Event()
        self._error: Exception | None = None

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Write the rows, and keep them for the thread."""
        self._files.turns(rows)
        with self._waiting:
            self._turns += rows

    def step(self, row: StepMetric) -> None:
        """Write the step with what this attempt makes of the machine, and keep it likewise."""
        row = replace(row, attempt=self._attempt, **asdict(self._meter.read()))
        self._files.step(row)
        with self._waiting:
            self._steps.append(row)

    def settle(self) -> None:
        """Flush the files; the database may lag behind them."""
        self._files.settle()

    def rewind(self, step: int) -> None:
        """Delete the rows after `step`, and bring those up to it that only the files have."""
        self._files.rewind(step)

        def discard() -> None:
            commands.discard_metrics_after(self._database, self._run_id, step)
            restore_figures(self._database, self._run_id, self._files.folder)

        with self._storing:
            with self._waiting:
                self._turns, self._steps = [], []
            patiently(discard)

    def progress(self, share: float, message: str) -> bool:
        """Keep the progress for the next heartbeat; return whether anybody wants a stop."""
        if self._error is not None:
            raise self._error
        self._state = (share, message)
        return self._files.progress(share, message) or self._stop.is_set()

    def note(self, text: str) -> None:
        """Put the text into the log."""
        self._files.note(text)

    def stop(self) -> bool:
        """Make the next `progress` ask for a stop; return whether that had been asked before."""
        return self._files.stop() or self._stop.is_set()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Store what comes, and beat, from a thread while the block runs; then store the rest.

        Raises:
            StorageError: if the rest cannot be stored.
            DataError: if a figure is not finite.
        """
        done = threading.Event()

        def work() -> None:
            while True:
                with suppress(StorageError):  # a locked database: the next time will do
                    self._look()
                if done.wait(LOOK_EVERY_S):
                    return

        thread = threading.Thread(target=work, name="recorder", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self._files.write_events()
            patiently(self.store)
        if self._error is not None:
            raise self._error

    def store(self) -> None:
        """Store everything that waits, with a heartbeat, in one transaction.

        Raises:
            StorageError: if the database cannot be written; the rows go on waiting.
        """
        with self._storing:
            with self._waiting:
                turns, steps = list(self._turns), list(self._steps)
            state, beaten_at = self._state, time.monotonic()
            share, message = state
            try:
                stop = commands.report(
                    self._database,
                    self._run_id,
                    turns=turns,
                    steps=steps,
                    progress=share,
                    message=message,
                )
            except StorageError:
                raise
            except Exception as error:  # noqa: BLE001 - a thread's edge: the loop raises it
                self._error, stop = error, True
            with self._waiting:
                del self._turns[: len(turns)], self._steps[: len(steps)]
            self._told, self._told_at = state, beaten_at
            if stop:
                self._stop.set()

    def _look(self) -> None:
        """Store if it is time to; else only ask whether to stop."""
        self._meter.look()
        is_new = bool(self._turns or self._steps) or self._state != self._told
        if time.monotonic() - self._told_at >= (STORE_EVERY_S if is_new else HEARTBEAT_S):
            self._files.write_events()
            self.store()
        elif _is_to_stop(self._database, self._run_id):
            self._stop.set()


def _is_to_stop(database: Database, run_id: int) -> bool:
    """Return whether somebody asked the run to stop, or declared it over."""
    run = queries.run(database, run_id)
    return run.stop_stage is not None or run.status.has_ended
