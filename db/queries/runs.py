"""Reading runs and their figures."""

from datetime import datetime

from sqlalchemy import select

from db.engine import Database
from db.enums import RunStatus
from db.errors import NotFoundError
from db.models import ArtifactTable, RunTable, StepMetricTable, TurnMetricTable
from db.records import Artifact, NewTurnMetrics, Run, StepMetric, TurnMetric


def run(db: Database, run_id: int) -> Run:
    """Return one run.

    Raises:
        NotFoundError: if it does not exist (any more).
    """
    with db.read_session() as session:
        row = session.get(RunTable, run_id)
        if row is None:
            raise run_not_found(run_id)
        return run_record(row)


def runs(db: Database) -> list[Run]:
    """Return all runs, newest first."""
    with db.read_session() as session:
        return [
            run_record(r) for r in session.scalars(select(RunTable).order_by(RunTable.id.desc()))
        ]


def runs_with_status(db: Database, *statuses: RunStatus) -> list[Run]:
    """Return the runs in one of these states, first queued first."""
    statement = (
        select(RunTable)
        .where(RunTable.status.in_(statuses))
        .order_by(RunTable.queue_place, RunTable.id)
    )
    with db.read_session() as session:
        return [run_record(row) for row in session.scalars(statement)]


def runs_ended_after(db: Database, moment: datetime) -> list[Run]:
    """Return the runs that have ended since a moment, the latest end first."""
    statement = (
        select(RunTable).where(RunTable.ended_at > moment).order_by(RunTable.ended_at.desc())
    )
    with db.read_session() as session:
        return [run_record(row) for row in session.scalars(statement)]


def queue_position(db: Database, run_id: int) -> int | None:
    """Return how many runs wait for the same device before this one; None if it does not wait."""
    queued = runs_with_status(db, RunStatus.QUEUED)
    device = next((run.device for run in queued if run.id == run_id), None)
    waiting = [run.id for run in queued if run.device == device]
    return waiting.index(run_id) if run_id in waiting else None


def turn_metrics(
    db: Database, run_id: int, *, after_step: int = -1, conversation: int | None = None
) -> list[TurnMetric]:
    """Return the run's per-turn figures behind a step, ordered by step, conversation, turn.

    Args:
        db: The database.
        run_id: Which run.
        after_step: Only later steps are returned.
        conversation: Position in the run's data of the one to return; None for all of them.
    """
    fields = [TurnMetricTable.__table__.c[name] for name in TurnMetric.__dataclass_fields__]
    statement = (
        select(*fields)
        .where(TurnMetricTable.run_id == run_id, TurnMetricTable.step > after_step)
        .order_by(TurnMetricTable.step, TurnMetricTable.conversation, TurnMetricTable.turn)
    )
    if conversation is not None:
        statement = statement.where(TurnMetricTable.conversation == conversation)
    with db.read_session() as session:
        return [TurnMetric(**row) for row in session.execute(statement).mappings()]


def new_turn_metrics(db: Database, run_id: int, *, mark: int = 0) -> NewTurnMetrics:
    """Return the run's per-turn figures that were written behind a mark, oldest first.

    A row that was measured again is written again, and so comes again; after a resume
    (`Run.attempt`) begin anew at mark 0.

    Args:
        db: The database.
        run_id: Which run.
        mark: The mark of the last answer; 0 asks for all rows.
    """
    fields = [TurnMetricTable.__table__.c[name] for name in TurnMetric.__dataclass_fields__]
    statement = (
        select(TurnMetricTable.number, *fields)
        .where(TurnMetricTable.run_id == run_id, TurnMetricTable.number > mark)
        .order_by(TurnMetricTable.number)
    )
    with db.read_session() as session:
        found = session.execute(statement).all()
    rows = tuple(
        TurnMetric(**dict(zip(TurnMetric.__dataclass_fields__, values, strict=True)))
        for _, *values in found
    )
    return NewTurnMetrics(rows=rows, mark=found[-1][0] if found else mark)


def step_metrics(db: Database, run_id: int, *, after_step: int = -1) -> list[StepMetric]:
    """Return the run's per-step figures behind a step, in order."""
    fields = [StepMetricTable.__table__.c[name] for name in StepMetric.__dataclass_fields__]
    statement = (
        select(*fields)
        .where(StepMetricTable.run_id == run_id, StepMetricTable.step > after_step)
        .order_by(StepMetricTable.step)
    )
    with db.read_session() as session:
        return [StepMetric(**row) for row in session.execute(statement).mappings()]


def latest_step_metrics(db: Database, run_id: int, *, most: int) -> list[StepMetric]:
    """Return the run's figures of its last optimiser steps, at most so many, in order."""
    fields = [StepMetricTable.__table__.c[name] for name in StepMetric.__dataclass_fields__]
    statement = (
        select(*fields)
        .where(StepMetricTable.run_id == run_id)
        .order_by(StepMetricTable.step.desc())
        .limit(most)
    )
    with db.read_session() as session:
        return [StepMetric(**row) for row in session.execute(statement).mappings()][::-1]


def artifacts(db: Database, run_id: int) -> list[Artifact]:
    """Return what the run left behind, in the order in which it was added."""
    statement = (
        select(ArtifactTable).where(ArtifactTable.run_id == run_id).order_by(ArtifactTable.id)
    )
    with db.read_session() as session:
        return [
            Artifact(
                id=row.id,
                run_id=row.run_id,
                kind=row.kind,
                path=row.path,
                sha256=row.sha256,
                size_bytes=row.size_bytes,
            )
            for row in session.scalars(statement)
        ]


def run_record(row: RunTable) -> Run:
    """Return the record of one run."""
    return Run(
        id=row.id,
        name=row.name,
        status=row.status,
        config=row.config,
        base_model=row.base_model,
        device=row.device,
        conversations=row.conversations,
        turns=row.turns,
        snapshot_sha256=row.snapshot_sha256,
        attempt=row.attempt,
        claimed_by=row.claimed_by,
        machine=row.machine,
        pid=row.pid,
        process_started_at=row.process_started_at,
        heartbeat_at=row.heartbeat_at,
        stop_requested_at=row.stop_requested_at,
        stop_stage=row.stop_stage,
        stop_stage_at=row.stop_stage_at,
        progress=row.progress,
        message=row.message,
        error_kind=row.error_kind,
        error_text=row.error_text,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        metric_rows=row.metric_rows,
        parent_id=row.parent_id,
    )


def run_not_found(run_id: int) -> NotFoundError:
    """Return the error that says that a run is not there."""
    return NotFoundError(
        f"there is no run {run_id}",
        where="runs",
        remedy="It may have been deleted; go back to the list of runs.",
    )
