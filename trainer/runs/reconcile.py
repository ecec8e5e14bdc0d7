"""The database's word about runs, held against the processes that really exist. No torch."""

from datetime import UTC, datetime, timedelta

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.records import Run
from trainer.runs import process
from trainer.runs.folder import RunFolder
from trainer.runs.launch import start_waiting

START_GRACE = timedelta(seconds=30)
"""How long a starting run may be without a process on record."""

STOP_GRACE = timedelta(seconds=60)
"""How long a run may take to honour a stop request before it is told to terminate."""

KILL_GRACE = timedelta(seconds=90)
"""How long after the request it is killed."""


def reconcile(database: Database) -> None:
    """Make every run's status true: dead runs are ended, slow stops helped along, the next started.

    Safe to call from several processes at once and as often as anybody reads runs.
    """
    with_process = [status for status in RunStatus if status.has_process]
    for run in queries.runs_with_status(database, *with_process):
        _check(database, run)
    for run in queries.runs_with_status(database, RunStatus.QUEUED):
        if not run.snapshot_sha256 and _age(run.created_at) > START_GRACE:
            commands.end_run(
                database,
                run.id,
                RunStatus.FAILED,
                error_kind=ErrorKind.KILLED,
                error_text="The app ended while it prepared this run. Launch it again.",
            )
    start_waiting(database)


def _check(database: Database, run: Run) -> None:
    if run.pid is None or run.process_started_at is None:
        if _age(run.heartbeat_at or run.created_at) > START_GRACE:
            _bury(database, run)
        return
    if not process.is_alive(run.pid, run.process_started_at):
        _bury(database, run)
    elif run.status is RunStatus.STOPPING and run.stop_requested_at is not None:
        waited = _age(run.stop_requested_at)
        if waited > STOP_GRACE:
            process.end(run.pid, run.process_started_at, force=waited > KILL_GRACE)


def _bury(database: Database, run: Run) -> None:
    """End a run whose process is gone: as stopped if that was wanted, else as failed."""
    if run.stop_requested_at is not None:
        commands.end_run(database, run.id, RunStatus.STOPPED)
        return
    tail = RunFolder(database.settings.run_dir(run.id)).log_tail()
    text = (
        "The run's process ended without a word: it was killed, the machine ran out of memory or "
        "was switched off. What it had learned up to its last checkpoint is kept."
    )
    commands.end_run(
        database,
        run.id,
        RunStatus.FAILED,
        error_kind=ErrorKind.KILLED,
        error_text=f"{text}\n\nLast lines of the log:\n{tail}" if tail else text,
    )


def _age(moment: datetime) -> timedelta:
    return datetime.now(UTC) - moment
