"""Making, naming and deleting runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.engine import Database
from db.errors import ConflictError, DataError
from db.models import RunTable
from db.queries.runs import run_not_found, run_record
from db.records import Round, Run
from db.text import MAX_NAME_CHARS, one_line


def create_run(
    db: Database,
    *,
    name: str,
    config: dict[str, Any],
    base_model: str,
    conversations: int,
    turns: int,
    start_token: str,
    device: str = "",
    claimed_by: str = "",
    ancestors: Sequence[Round] = (),
) -> Run:
    """Create a queued run; it can be claimed once its snapshot is set.

    Args:
        db: The database.
        name: What people call it; it is kept on one line.
        config: The frozen training configuration as JSON data.
        base_model: Name of the model it starts from.
        conversations: How many conversations it trains on.
        turns: How many assistant turns they have.
        start_token: Made once for each form that people submit: the same token again (a double
            click, a repeated request) returns the run that exists.
        device: "cpu" or "cuda": what it will compute on.
        claimed_by: Names the process that is about to write the snapshot, so that others can tell
            when that process is gone before it did.
        ancestors: The rounds before it, oldest first; the last is the run that it starts from.

    Raises:
        DataError: if the name is empty or too long.
    """
    name = _run_name(name)
    with db.session() as session:
        row = session.scalars(
            select(RunTable).where(RunTable.start_token == start_token)
        ).one_or_none()
        if row is None:
            row = RunTable(
                name=name,
                config=config,
                base_model=base_model,
                conversations=conversations,
                turns=turns,
                start_token=start_token,
                device=device,
                claimed_by=claimed_by,
                parent_id=ancestors[-1].run_id if ancestors else None,
                ancestors=[asdict(round) for round in ancestors],
                queue_place=(session.scalar(select(func.max(RunTable.queue_place))) or 0) + 1,
            )
            session.add(row)
            session.flush()
        return run_record(row)


def set_snapshot(db: Database, run_id: int, sha256: str) -> None:
    """Say that the run's frozen data is written, and what its hash is.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        row = get_run(session, run_id)
        row.snapshot_sha256, row.claimed_by = sha256, ""


def rename_run(db: Database, run_id: int, name: str) -> None:
    """Give a run another name.

    Raises:
        DataError: if the name is empty or too long.
        NotFoundError: if the run does not exist (any more).
    """
    name = _run_name(name)
    with db.session() as session:
        get_run(session, run_id).name = name


def delete_run(db: Database, run_id: int) -> None:
    """Delete a run with its figures; its folder is the caller's.

    Raises:
        NotFoundError: if the run does not exist (any more).
        ConflictError: while it has a process.
    """
    with db.session() as session:
        row = get_run(session, run_id)
        if row.status.has_process:
            raise ConflictError(
                f"the run is {row.status} and cannot be deleted",
                where=f"run {run_id}",
                remedy="Stop it first.",
            )
        session.delete(row)


def get_run(session: Session, run_id: int) -> RunTable:
    """Return a run's row inside the caller's transaction.

    Raises:
        NotFoundError: if it does not exist (any more).
    """
    row = session.get(RunTable, run_id)
    if row is None:
        raise run_not_found(run_id)
    return row


def _run_name(name: str) -> str:
    line = one_line(name)
    if not line or len(line) > MAX_NAME_CHARS:
        raise DataError(
            f"a run's name cannot have {len(line):,} characters",
            where="name of the run",
            remedy=f"Give 1 to {MAX_NAME_CHARS}.",
        )
    return line
