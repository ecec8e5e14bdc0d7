"""The queue of waiting runs: who comes next, and in which order the others wait."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.commands.runs import get_run
from db.engine import Database
from db.enums import RunStatus
from db.errors import ConflictError
from db.models import RunTable, now
from db.queries.runs import run_record
from db.records import Run


def claim_next_run(db: Database, *, claimed_by: str = "") -> Run | None:
    """Turn the first waiting run whose device is free into a starting one.

    One transaction: of two processes that claim at once, one gets the run, the other None.

    Args:
        db: The database.
        claimed_by: Names the process that is about to start it, so that others can tell when that
            process is gone before it did.
    """
    busy = [status for status in RunStatus if status.has_process]
    held = select(RunTable.device).where(RunTable.status.in_(busy))
    first = (
        select(RunTable)
        .where(
            RunTable.status == RunStatus.QUEUED,
            RunTable.snapshot_sha256 != "",
            RunTable.device.not_in(held),
        )
        .order_by(RunTable.queue_place, RunTable.id)
        .limit(1)
    )
    with db.session() as session:
        row = session.scalars(first).one_or_none()
        if row is None:
            return None
        row.status = RunStatus.STARTING
        row.claimed_by = claimed_by
        row.heartbeat_at = now()
        row.machine, row.pid, row.process_started_at = "", None, None
        return run_record(row)


def release_run(db: Database, run_id: int, *, claimed_by: str) -> bool:
    """Give a run back to the queue that its claimer never started; it keeps its place.

    Returns:
        Whether it was still theirs, without a process of its own.
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if (row.status, row.claimed_by, row.pid) != (RunStatus.STARTING, claimed_by, None):
            return False
        row.status, row.claimed_by, row.heartbeat_at = RunStatus.QUEUED, "", None
        return True


def requeue_run(db: Database, run_id: int, *, attempt: int | None = None) -> Run:
    """Queue a run that ended before its time again, as its next attempt, behind all others.

    Args:
        db: The database.
        run_id: Which run.
        attempt: The attempt that is to be followed. If the run is already past it (a double
            click, a second tab), it stays as it is. None: that of now.

    Raises:
        NotFoundError: if the run does not exist (any more).
        ConflictError: if it is in another state.
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if attempt is not None and row.attempt > attempt:
            return run_record(row)
        if not row.status.can_resume:
            raise ConflictError(
                f"the run is {row.status} and cannot be resumed",
                where=f"run {run_id}",
                remedy="Only a run that failed, was stopped or interrupted can go on from its "
                "last checkpoint.",
            )
        row.status = RunStatus.QUEUED
        row.attempt += 1
        row.error_kind, row.error_text, row.message = None, "", ""
        row.stop_requested_at = row.stop_stage = row.stop_stage_at = None
        row.ended_at = row.heartbeat_at = row.notified_at = None
        row.claimed_by, row.machine, row.pid, row.process_started_at = "", "", None, None
        row.queued_at = now()
        row.queue_place = last_place(session) + 1
        return run_record(row)


def move_waiting_run(db: Database, run_id: int, *, position: int) -> list[int]:
    """Put a waiting run at another position of the queue, from 0; the others close up.

    Args:
        db: The database.
        run_id: Which run.
        position: Where it shall wait; beyond the end means last.

    Returns:
        The waiting runs' ids in their new order. A run that has left the queue meanwhile changes
        nothing.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        get_run(session, run_id)
        waiting = list(
            session.scalars(
                select(RunTable)
                .where(RunTable.status == RunStatus.QUEUED)
                .order_by(RunTable.queue_place, RunTable.id)
            )
        )
        places = [row.queue_place for row in waiting]
        moved = [row for row in waiting if row.id == run_id]
        others = [row for row in waiting if row.id != run_id]
        at = min(max(position, 0), len(others))
        order = [*others[:at], *moved, *others[at:]]
        for row, place in zip(order, places, strict=True):
            row.queue_place = place
        return [row.id for row in order]


def last_place(session: Session) -> int:
    """Return the largest place in the queue that any run ever had."""
    return session.scalar(select(func.max(RunTable.queue_place))) or 0
