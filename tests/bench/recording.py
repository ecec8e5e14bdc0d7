"""What recording costs a run, and how long Start and Stop take.

One run of 100 steps in this process. Counted are the time that its loop spends in the recorder and
the processor time of the recorder's thread; the sum can only be larger than what the run loses.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ParamSpec, TypeVar

from db import commands, queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.records import Run, StepMetric, TurnMetric
from db.settings import Settings
from tests.runs import scored
from trainer.catalog import find_model, model_folder
from trainer.config import EMBEDDED_MODEL, TrainConfig
from trainer.runs import process
from trainer.runs.database_recorder import DatabaseRecorder
from trainer.runs.folder import RunFolder
from trainer.runs.launch import request_stop, start_run
from trainer.runs.log import kept_small
from trainer.runs.reconcile import reconcile
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder

CONVERSATIONS, EPOCHS = 10, 10

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Spent:
    """Seconds spent in the recorder."""

    in_loop_s: float = 0.0
    in_thread_s: float = 0.0


class TimedRecorder(DatabaseRecorder):
    """A recorder that counts what it costs."""

    spent = Spent()

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Count."""
        self._count(super().turns, rows)

    def step(self, row: StepMetric) -> None:
        """Count."""
        self._count(super().step, row)

    def settle(self) -> None:
        """Count."""
        self._count(super().settle)

    def progress(self, share: float, message: str) -> bool:
        """Count."""
        return self._count(super().progress, share, message)

    def _look(self) -> None:
        started = time.thread_time()
        super()._look()
        self.spent.in_thread_s += time.thread_time() - started

    def _count(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        started = time.perf_counter()
        result = call(*args, **kwargs)
        self.spent.in_loop_s += time.perf_counter() - started
        return result


def recording(settings: Settings) -> dict[str, float]:
    """Return what was measured with the embedded model, as `tests.bench.runs` names it.

    Args:
        settings: Where the model is; the runs go into a home of their own.
    """
    model = str(model_folder(settings, EMBEDDED_MODEL))
    with TemporaryDirectory() as home:
        own = Settings(home=Path(home), database_url=f"sqlite:///{home}/everyturn.db")
        database = open_database(own)
        start_s, first = _start(database, model, "start")
        stop_s = _stop(database, first)
        _end(database, first)
        _, run = _start(database, model, "recorded")
        _end(database, run)
        measured = _measure(database, run)
        database.close()
    return {"start_s": start_s, "stop_s": stop_s, **measured}


def _start(database: Database, model: str, name: str) -> tuple[float, Run]:
    talks = [
        scored(
            (f"Question {name} {number}, please", "Yes, gladly.", number / CONVERSATIONS),
            ("And then?", "No.", -0.5),
        )
        for number in range(CONVERSATIONS)
    ]
    ids, _ = commands.add_conversations(database, talks)
    config = TrainConfig(
        base_model=find_model(database.settings, model).name,
        epochs=EPOCHS,
        batch_conversations=1,
        max_kl=0.0,
        sample_prompts=0,
    )
    started = time.perf_counter()
    run = start_run(database, name=name, conversation_ids=ids, config=config, start_token=name)
    return time.perf_counter() - started, run


def _stop(database: Database, run: Run) -> float:
    """Do what the button does, and what the page reads after it."""
    started = time.perf_counter()
    request_stop(database, run.id)
    reconcile(database)
    assert queries.run(database, run.id).status is RunStatus.STOPPING
    return time.perf_counter() - started


def _end(database: Database, run: Run) -> None:
    """End the process that was started: what is measured runs here."""
    assert run.pid is not None and run.process_started_at is not None
    process.end(run.pid, run.process_started_at, force=True)
    while process.is_alive(run.pid, run.process_started_at):
        time.sleep(0.05)
    commands.end_run(database, run.id, RunStatus.STOPPED)


def _measure(database: Database, run: Run) -> dict[str, float]:
    commands.requeue_run(database, run.id)
    commands.claim_next_run(database)
    commands.begin_run(database, run.id)
    folder = RunFolder(database.settings.run_dir(run.id))
    with folder.log.open("a") as log:
        recorder = TimedRecorder(database, run.id, FileRecorder(folder.metrics, output=log))
        with kept_small(folder), recorder.recording():
            run_folder(folder, recorder, database.settings)
    steps = queries.step_metrics(database, run.id)
    return {
        "steps_s": sum(step.seconds for step in steps),
        "loop_s": recorder.spent.in_loop_s,
        "thread_s": recorder.spent.in_thread_s,
    }
