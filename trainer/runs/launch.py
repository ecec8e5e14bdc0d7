"""How a run begins: a row, a frozen copy of its data, then a process of its own. No torch."""

import subprocess
import sys
from collections.abc import Sequence

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.errors import ConflictError
from db.formats import write
from db.records import Conversation, Run
from trainer.catalog import find_model
from trainer.compute_environment import COMPUTE_ENVIRONMENT
from trainer.config import TrainConfig
from trainer.errors import DiskFullError, TrainerError
from trainer.preview import preview, refuse_blocked
from trainer.runs.failure import explain
from trainer.runs.folder import RunFolder, sha256_of, write_json, write_text
from trainer.runs.process import own_environment, start_time


def start_run(
    database: Database,
    *,
    name: str,
    conversation_ids: Sequence[int],
    config: TrainConfig,
    start_token: str,
) -> Run:
    """Create a run, freeze its data and start it; it waits if another run holds the device.

    Args:
        database: Where conversations are read and the run is recorded.
        name: What people call the run.
        conversation_ids: The conversations to train on, in this order.
        config: The full configuration, stored before anything else happens.
        start_token: Any string; the same token gives the same run, so two clicks start one.

    Raises:
        BadDataError: if the data cannot be trained on (see `trainer.preview`).
        ModelError: if there is no such base model.
        DiskFullError, TrainerError: if the run's folder cannot be written.
    """
    conversations = queries.conversations(database, list(conversation_ids))
    config = config.replace(base_model=find_model(database.settings, config.base_model).name)
    table = preview(conversations, config)
    refuse_blocked(table)
    run = commands.create_run(
        database,
        name=name,
        config=config.to_json(),
        base_model=config.base_model,
        conversations=len(conversations),
        turns=len(table.turns),
        start_token=start_token,
    )
    if run.snapshot_sha256:
        return run
    try:
        _freeze(database, run, conversations, config)
    except OSError as error:
        failure = explain(error)
        commands.end_run(
            database,
            run.id,
            RunStatus.FAILED,
            error_kind=failure.kind,
            error_text=failure.text,
        )
        kind = DiskFullError if failure.kind is ErrorKind.DISK_FULL else TrainerError
        raise kind(failure.text, where=f"run {run.id}") from error
    start_waiting(database)
    return queries.run(database, run.id)


def _freeze(
    database: Database, run: Run, conversations: Sequence[Conversation], config: TrainConfig
) -> None:
    """Write the run's own copy of configuration and data; from then on it can be claimed."""
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.path.mkdir(parents=True, exist_ok=True)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(conversations, "native"))
    commands.set_snapshot(database, run.id, sha256_of(folder.data))


def start_waiting(database: Database) -> Run | None:
    """Start the run that has waited longest, if the device is free; return it."""
    run = commands.claim_next_run(database)
    if run is None:
        return None
    try:
        pid = _spawn(database, run)
    except OSError as error:
        commands.end_run(
            database,
            run.id,
            RunStatus.FAILED,
            error_kind=ErrorKind.UNEXPECTED,
            error_text=f"The run's process could not be started: {error}.",
        )
        return queries.run(database, run.id)
    started_at = start_time(pid)
    if started_at is not None:
        commands.record_process(database, run.id, pid=pid, process_started_at=started_at)
    return queries.run(database, run.id)


def resume_run(database: Database, run_id: int) -> Run:
    """Put a stopped or failed run back into the queue; it goes on from its last checkpoint.

    Raises:
        ConflictError: if the run has not ended, or has finished.
        CheckpointError: if the run's folder is gone.
    """
    RunFolder(database.settings.run_dir(run_id)).require()
    commands.requeue_run(database, run_id)
    start_waiting(database)
    return queries.run(database, run_id)


def resume_here(database: Database, run_id: int) -> None:
    """Claim a stopped or failed run for the processes that a launcher has started for it.

    Raises:
        ConflictError: if the run cannot be resumed, or another one holds the device or waits.
        CheckpointError: if the run's folder is gone.
    """
    RunFolder(database.settings.run_dir(run_id)).require()
    others = [run for run in queries.runs(database) if not run.status.has_ended]
    if others:
        raise ConflictError(
            f"run {others[0].id} is {others[0].status}",
            where=f"run {run_id}",
            remedy="Wait until no run holds the device or waits for it.",
        )
    commands.requeue_run(database, run_id)
    commands.claim_next_run(database)


def request_stop(database: Database, run_id: int) -> Run:
    """Ask a run to stop after the turn it is at; a waiting run stops at once."""
    return commands.request_stop(database, run_id)


def _spawn(database: Database, run: Run) -> int:
    """Start the run's process in a session of its own, its output in the log; return its pid."""
    settings = database.settings
    folder = RunFolder(settings.run_dir(run.id))
    environment = {
        **COMPUTE_ENVIRONMENT,
        **own_environment(),
        "EVERYTURN_HOME": str(settings.home),
        "DATABASE_URL": settings.database_url,
        "PYTHONUNBUFFERED": "1",
    }
    with folder.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer", "run", str(run.id)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=settings.home,
            env=environment,
        )
    return process.pid
