"""A run's way from queued to its end; every step checks the state it starts from."""

from db.commands.runs import get_run
from db.engine import Database
from db.enums import ErrorKind, RunStatus, StopStage
from db.errors import ConflictError
from db.models import RunTable, now
from db.queries.runs import run_record
from db.records import Run


def record_process(
    db: Database,
    run_id: int,
    *,
    pid: int,
    process_started_at: float,
    machine: str = "",
    claimed_by: str | None = None,
    instead_of: int | None = None,
) -> bool:
    """Store which process runs it.

    Args:
        db: The database.
        run_id: Which run.
        pid: The process, by its id,
        process_started_at: and by when it started.
        machine: The machine that it runs on.
        claimed_by: Who started it: it is stored only if the run is still theirs and has none. None:
            the process says so itself.
        instead_of: The process that it takes the run over from, by its id. If the run has another
            one by now, that came first, and this one is not stored.

    Returns:
        Whether it was stored: the process of a run that has ended, or waits again, is none.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if claimed_by is None:
            is_theirs = row.pid in (None, pid, instead_of)
        else:
            is_theirs = (row.claimed_by, row.pid) == (claimed_by, None)
        if not (row.status.has_process and is_theirs):
            return False
        row.machine, row.pid, row.process_started_at = machine, pid, process_started_at
        row.heartbeat_at = now()
        return True


def begin_run(db: Database, run_id: int) -> None:
    """Turn a starting run into a running one; a stop request that came meanwhile stays.

    Raises:
        NotFoundError: if the run does not exist (any more).
        ConflictError: if nobody claimed the run, or it has ended.
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if not row.status.has_process:
            raise ConflictError(
                f"the run is {row.status}, not starting",
                where=f"run {run_id}",
                remedy="Start or resume it from the list of runs.",
            )
        if row.status is RunStatus.STARTING:
            row.status = RunStatus.RUNNING
        row.heartbeat_at = now()
        row.started_at = row.started_at or row.heartbeat_at


def heartbeat(db: Database, run_id: int, *, progress: float, message: str) -> bool:
    """Say that the run lives and how far it is.

    Returns:
        Whether it should stop: somebody asked for it, or the run was declared over.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        return beat(get_run(session, run_id), progress=progress, message=message)


def beat(row: RunTable, *, progress: float, message: str) -> bool:
    """Do the same with a run's row, inside the caller's transaction."""
    if row.status.has_ended:
        return True
    row.progress = min(max(progress, 0.0), 1.0)
    row.message = message
    row.heartbeat_at = now()
    return row.stop_stage is not None


def request_stop(db: Database, run_id: int) -> Run:
    """Ask a run to stop: a waiting one stops at once, one that has ended stays as it is.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if row.status is RunStatus.QUEUED:
            row.status = RunStatus.STOPPED
            row.stop_requested_at = row.ended_at = row.notified_at = now()
        elif row.status.has_process and row.stop_stage is None:
            row.status = RunStatus.STOPPING
            row.stop_stage = StopStage.ASKED
            row.stop_requested_at = row.stop_stage_at = now()
        return run_record(row)


def advance_stop(db: Database, run_id: int, stage: StopStage) -> Run:
    """Say that a stop has reached a stage, or anew that it is there: its time counts from now.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if row.status is RunStatus.STOPPING:
            row.stop_stage, row.stop_stage_at = stage, now()
        return run_record(row)


def end_run(
    db: Database,
    run_id: int,
    status: RunStatus,
    *,
    error_kind: ErrorKind | None = None,
    error_text: str = "",
    attempt: int | None = None,
) -> bool:
    """End a run as finished, failed, stopped or interrupted, unless it has ended already.

    Args:
        db: The database.
        run_id: Which run.
        status: How it ended.
        error_kind: The kind of failure, if it is one.
        error_text: What happened and what to do, in words.
        attempt: The attempt that has ended, should the run be at a later one by now.

    Returns:
        Whether this call ended it.

    Raises:
        NotFoundError: if the run does not exist (any more).
        ConflictError: if `status` is not an end.
    """
    if not status.has_ended:
        raise ConflictError(f"{status} is not an end of a run", where=f"run {run_id}")
    with db.session() as session:
        row = get_run(session, run_id)
        if row.status.has_ended or attempt not in (None, row.attempt):
            return False
        row.status, row.error_kind, row.error_text = status, error_kind, error_text
        row.claimed_by, row.machine, row.pid, row.process_started_at = "", "", None, None
        row.ended_at = now()
        return True


def claim_notice(db: Database, run_id: int) -> bool:
    """Take it upon the caller to tell the world that a run has ended; only one caller is told yes.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if not row.status.has_ended or row.notified_at is not None:
            return False
        row.notified_at = now()
        return True
