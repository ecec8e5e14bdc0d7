"""Rows that the app's tests need: figures of turns and steps, and whole runs in the database."""

import subprocess
import sys

from db import commands, formats, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.records import Run, StepMetric, TurnMetric
from trainer.config import TrainConfig
from trainer.runs import process
from trainer.runs.folder import RunFolder, sha256_of, write_text


def turn_row(step: int, conversation: int, turn: int, **changes: float | None) -> TurnMetric:
    """Return a turn's figures; an epoch has one step unless `changes` say otherwise."""
    values = {
        "epoch": step,
        "tokens": 20,
        "response_tokens": 10,
        "reward": 0.5,
        "advantage": 0.1,
        "loss_mean": 0.0,
        "loss_sum": 0.0,
        "ratio_mean": 1.0,
        "clipfrac": 0.0,
        "clipfrac_binding": 0.0,
        "kl_mean": 0.0,
        "logprob_mean": -1.0,
        "kl_base": None,
    } | changes
    return TurnMetric(step=step, conversation=conversation, turn=turn, **values)  # type: ignore[arg-type]


def step_row(number: int, **changes: float | None) -> StepMetric:
    """Return an optimiser step's figures."""
    values = {
        "epoch": 0,
        "loss": 0.1,
        "grad_norm": 0.2,
        "lr": 1e-4,
        "kl": 0.01,
        "kl_base": None,
        "tokens_per_s": 100.0,
        "memory_bytes": 1,
        "seconds": 1.0,
    } | changes
    return StepMetric(step=number, **values)  # type: ignore[arg-type]


def make_run(
    database: Database,
    conversation_ids: list[int],
    status: RunStatus,
    *,
    name: str = "Tone",
    config: TrainConfig | None = None,
    steps: int = 0,
    progress: float = 0.5,
    message: str = "epoch 1 of 3",
    error: tuple[ErrorKind, str] | None = None,
) -> Run:
    """Bring a run into a state by the commands that the product uses, with figures and folder.

    A run that needs a process gets one that lives as long as the test.
    """
    config = config or TrainConfig()
    conversations = queries.conversations(database, conversation_ids)
    run = commands.create_run(
        database,
        name=name,
        config=config.to_json(),
        base_model=config.base_model,
        conversations=len(conversations),
        turns=sum(len(c.assistant_messages) for c in conversations),
        start_token=name,
    )
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.path.mkdir(parents=True)
    write_text(folder.data, formats.write(conversations, "native"))
    commands.set_snapshot(database, run.id, sha256_of(folder.data))
    if status is not RunStatus.QUEUED:
        commands.claim_next_run(database)
        pid, started = _living_process()
        machine = process.own_machine()
        commands.record_process(
            database, run.id, pid=pid, process_started_at=started, machine=machine
        )
    if status not in (RunStatus.QUEUED, RunStatus.STARTING):
        commands.begin_run(database, run.id)
        commands.heartbeat(database, run.id, progress=progress, message=message)
        for step in range(steps):
            add_step(database, run.id, step)
    if status is RunStatus.STOPPING:
        commands.request_stop(database, run.id)
    if status.has_ended:
        kind, text = error or (None, "")
        commands.end_run(database, run.id, status, error_kind=kind, error_text=text)
    return queries.run(database, run.id)


def add_step(database: Database, run_id: int, step: int) -> None:
    """Record one step: two conversations of two turns, whose replies move as their scores ask."""
    rows = [
        turn_row(
            step,
            conversation,
            turn,
            advantage=advantage,
            logprob_mean=-1.0 + step * advantage,
            ratio_mean=1.0 + step * advantage,
        )
        for conversation in (0, 1)
        for turn, advantage in enumerate((0.25, -0.25))
    ]
    commands.add_turn_metrics(database, run_id, rows)
    commands.add_step_metric(database, run_id, step_row(step, epoch=step))


def _living_process() -> tuple[int, float]:
    """Start a process that stands for a run's; the `settings` fixture ends it with the test."""
    while_parent = (
        "import os, time\nparent = os.getppid()\nwhile os.getppid() == parent: time.sleep(0.5)"
    )
    sleeper = subprocess.Popen([sys.executable, "-S", "-c", while_parent])
    started = process.start_time(sleeper.pid)
    assert started is not None
    return sleeper.pid, started
