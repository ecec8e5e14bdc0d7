"""The database's word about runs, held against the processes that really exist. No torch."""

from datetime import UTC, datetime, timedelta

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus, StopStage
from db.records import Run
from trainer.runs import process
from trainer.runs.failure import Failure
from trainer.runs.folder import RunFolder
from trainer.runs.launch import start_waiting
from trainer.runs.metric_files import restore_figures
from trainer.runs.notice import tell_in_background
from trainer.runs.process import Mark, Sign

START_GRACE = timedelta(seconds=60)
"""How long a living process may take to start a run that it has claimed, or to write its data."""

SILENCE = timedelta(seconds=60)
"""How long a run on another machine may give no sign of life."""

STOP_GRACE = {
    StopStage.ASKED: timedelta(seconds=60),
    StopStage.TERMINATED: timedelta(seconds=30),
    StopStage.KILLED: timedelta(seconds=10),
}
"""How long each stage of a stop may take before the next; the last one is repeated."""

NEXT_STAGE = {
    StopStage.ASKED: StopStage.TERMINATED,
    StopStage.TERMINATED: StopStage.KILLED,
    StopStage.KILLED: StopStage.KILLED,
}

KILLED = Failure(
    ErrorKind.KILLED,
    "The run's process ended without a word: something killed it, most often because the "
    "machine's memory ran out. What it had learned up to its last checkpoint is kept.",
)

RESTARTED = Failure(
    ErrorKind.INTERRUPTED,
    "The machine was switched off or started anew while the run went on. What it had learned up "
    "to its last checkpoint is kept: resume it.",
)

SILENT = Failure(
    ErrorKind.INTERRUPTED,
    "The machine that the run was on has given no sign of life for more than a minute. What it "
    "had learned up to its last checkpoint is kept: resume it.",
)

NEVER_PREPARED = Failure(
    ErrorKind.KILLED, "The app ended while it prepared this run. Launch it again."
)


def reconcile(database: Database) -> None:
    """Make every run's status true: dead runs are ended, slow stops helped along, the next started.

    Safe to call from several processes at once and as often as anybody reads runs: it only writes
    where something has changed, so that a reader never waits for another program's write.
    """
    with_process = [status for status in RunStatus if status.has_process]
    held = {
        run.device
        for run in queries.runs_with_status(database, *with_process)
        if not _is_over(database, run)
    }
    waiting = queries.runs_with_status(database, RunStatus.QUEUED)
    for run in waiting:
        if not run.snapshot_sha256 and _was_given_up(run, since=run.created_at):
            _end(database, run, RunStatus.FAILED, NEVER_PREPARED)
    if any(run.snapshot_sha256 and run.device not in held for run in waiting):
        start_waiting(database)


def _is_over(database: Database, run: Run) -> bool:
    """Look after a run that should have a process; return whether it holds its device no more."""
    if run.pid is None or run.process_started_at is None:
        return _was_given_up(run, since=run.heartbeat_at or run.created_at) and _take_back(
            database, run
        )
    mark = Mark(machine=run.machine, pid=run.pid, started_at=run.process_started_at)
    match mark.sign():
        case Sign.ALIVE:
            if run.status is RunStatus.STOPPING:
                _help_to_stop(database, run, mark)
            return False
        case Sign.ELSEWHERE:
            silent = _age(run.heartbeat_at or run.created_at) > SILENCE
            return silent and _bury(database, run, RunStatus.INTERRUPTED, SILENT)
        case Sign.RESTARTED:
            return _bury(database, run, RunStatus.INTERRUPTED, RESTARTED)
        case Sign.GONE:
            return _bury(database, run, RunStatus.FAILED, KILLED)


def _was_given_up(run: Run, *, since: datetime) -> bool:
    """Return whether the process that wanted to prepare or start a run never will."""
    sign = Mark.from_text(run.claimed_by).sign()
    return sign in (Sign.GONE, Sign.RESTARTED) or _age(since) > START_GRACE


def _take_back(database: Database, run: Run) -> bool:
    """Give a run that never got a process back to the queue; a stop that came meanwhile ends it."""
    if run.stop_stage is not None:
        return commands.end_run(database, run.id, RunStatus.STOPPED)
    return commands.release_run(database, run.id, claimed_by=run.claimed_by)


def _help_to_stop(database: Database, run: Run, mark: Mark) -> None:
    """Take a stop to its next stage once its time is up."""
    stage = run.stop_stage or StopStage.ASKED
    waited = _age(run.stop_stage_at or datetime.now(UTC))
    if waited < timedelta(0):  # the clock was set back: the stage's time begins anew
        commands.advance_stop(database, run.id, stage)
    elif waited > STOP_GRACE[stage]:
        stage = NEXT_STAGE[stage]
        process.end(mark.pid, mark.started_at, force=stage is StopStage.KILLED)
        commands.advance_stop(database, run.id, stage)


def _bury(database: Database, run: Run, status: RunStatus, failure: Failure) -> bool:
    """End a run whose process is gone: as stopped if that was wanted, else with the reason."""
    if run.stop_stage is not None:
        return _end(database, run, RunStatus.STOPPED, None)
    tail = RunFolder(database.settings.run_dir(run.id)).log_tail()
    if tail:
        failure = Failure(failure.kind, f"{failure.text}\n\nLast lines of the log:\n{tail}")
    return _end(database, run, status, failure)


def _end(database: Database, run: Run, status: RunStatus, failure: Failure | None) -> bool:
    """End the run, save what its files know and the database does not, and tell about it."""
    kind, text = (failure.kind, failure.text) if failure else (None, "")
    ended = commands.end_run(
        database, run.id, status, error_kind=kind, error_text=text, attempt=run.attempt
    )
    if not ended:
        return True
    tell_in_background(database, run.id)
    restore_figures(database, run.id, RunFolder(database.settings.run_dir(run.id)))
    return True


def _age(moment: datetime) -> timedelta:
    return datetime.now(UTC) - moment
