"""A run's way from queued to its end; every step checks the state it starts from."""

from sqlalchemy import select

from db.commands.runs import get_run
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.errors import ConflictError
from db.models import RunTable, now
from db.queries.runs import run_record
from db.records import Run


def claim_next_run(db: Database) -> Run | None:
    """Turn the run that has waited longest into a starting one, if no run has a process.

    One transaction: of two processes that claim at once, one gets the run, the other None.
    """
    busy = [status for status in RunStatus if status.has_process]
    with db.session() as session:
        if session.scalars(select(RunTable.id).where(RunTable.status.in_(busy)).limit(1)).first():
            return None
        row = session.scalars(
            select(RunTable)
            .where(RunTable.status == RunStatus.QUEUED, RunTable.snapshot_sha256 != "")
            .order_by(RunTable.queued_at, RunTable.id)
            .limit(1)
        ).one_or_none()
        if row is None:
            return None
        row.status = RunStatus.STARTING
        row.heartbeat_at = now()
        row.pid = row.process_started_at = None
        return run_record(row)


def requeue_run(db: Database, run_id: int) -> Run:
    """Queue a failed or stopped run again, as its next attempt.

    Raises:
        NotFoundError: if the run does not exist (any more).
        ConflictError: if it is in another state.
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if row.status not in (RunStatus.FAILED, RunStatus.STOPPED):
            raise ConflictError(
                f"the run is {row.status} and cannot be resumed",
                where=f"run {run_id}",
                remedy="Only failed and stopped runs can go on from their last checkpoint.",
            )
        row.status = RunStatus.QUEUED
        row.attempt += 1
        row.error_kind, row.error_text, row.message = None, "", ""
        row.stop_requested_at = row.ended_at = row.heartbeat_at = None
        row.pid = row.process_started_at = None
        row.queued_at = now()
        return run_record(row)


def record_process(db: Database, run_id: int, *, pid: int, process_started_at: float) -> None:
    """Store which process runs it.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        row.pid, row.process_started_at, row.heartbeat_at = pid, process_started_at, now()


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
        row = get_run(session, run_id)
        if row.status.has_ended:
            return True
        row.progress = min(max(progress, 0.0), 1.0)
        row.message = message
        row.heartbeat_at = now()
        return row.stop_requested_at is not None


def request_stop(db: Database, run_id: int) -> Run:
    """Ask a run to stop: a waiting one stops at once, one that has ended stays as it is.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if row.status is RunStatus.QUEUED:
            row.status = RunStatus.STOPPED
            row.stop_requested_at = row.ended_at = now()
        elif row.status.has_process:
            row.status = RunStatus.STOPPING
            row.stop_requested_at = row.stop_requested_at or now()
        return run_record(row)


def end_run(
    db: Database,
    run_id: int,
    status: RunStatus,
    *,
    error_kind: ErrorKind | None = None,
    error_text: str = "",
) -> bool:
    """End a run as finished, failed or stopped, unless it has ended already.

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
        if row.status.has_ended:
            return False
        row.status, row.error_kind, row.error_text = status, error_kind, error_text
        row.pid = row.process_started_at = None
        row.ended_at = now()
        return True
