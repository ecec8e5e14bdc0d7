"""Storing what a run measured and what it left behind."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.commands.run_life import beat
from db.commands.runs import get_run
from db.engine import Database
from db.enums import ArtifactKind
from db.errors import DataError
from db.models import ArtifactTable, RunTable, StepMetricTable, TurnMetricTable
from db.records import StepMetric, TurnMetric


def add_turn_metrics(db: Database, run_id: int, rows: Sequence[TurnMetric]) -> None:
    """Store per-turn figures; those of the same step, conversation and turn are replaced.

    Raises:
        NotFoundError: if the run does not exist (any more).
        DataError: if a figure is not finite.
    """
    _upsert(db, TurnMetricTable, run_id, rows)


def add_step_metric(db: Database, run_id: int, row: StepMetric) -> None:
    """Store one step's figures; those of the same step are replaced.

    Raises:
        NotFoundError: if the run does not exist (any more).
        DataError: if a figure is not finite.
    """
    _upsert(db, StepMetricTable, run_id, [row])


def add_step_metrics(db: Database, run_id: int, rows: Sequence[StepMetric]) -> None:
    """Store the figures of several steps in the same way.

    Raises:
        NotFoundError: if the run does not exist (any more).
        DataError: if a figure is not finite.
    """
    _upsert(db, StepMetricTable, run_id, rows)


def report(
    db: Database,
    run_id: int,
    *,
    turns: Sequence[TurnMetric],
    steps: Sequence[StepMetric],
    progress: float,
    message: str,
) -> bool:
    """Store what a run has measured and that it lives, in one transaction.

    Returns:
        Whether it should stop (see `heartbeat`).

    Raises:
        NotFoundError: if the run does not exist (any more).
        DataError: if a figure is not finite.
    """
    turn_values, step_values = _values(run_id, turns), _values(run_id, steps)
    with db.session() as session:
        run = get_run(session, run_id)
        _write(session, run, TurnMetricTable, turn_values)
        _write(session, run, StepMetricTable, step_values)
        return beat(run, progress=progress, message=message)


def discard_metrics_after(db: Database, run_id: int, step: int) -> None:
    """Delete the figures of all steps behind `step`: a resumed run measures them again."""
    with db.session() as session:
        for table in (TurnMetricTable, StepMetricTable):
            session.execute(delete(table).where(table.run_id == run_id, table.step > step))


def add_artifact(
    db: Database, run_id: int, *, kind: ArtifactKind, path: str, sha256: str, size_bytes: int
) -> None:
    """Store that a run left a file or folder behind; the same kind and path is replaced.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.session() as session:
        get_run(session, run_id)
        statement = select(ArtifactTable).where(
            ArtifactTable.run_id == run_id,
            ArtifactTable.kind == kind,
            ArtifactTable.path == path,
        )
        row = session.scalars(statement).one_or_none()
        if row is None:
            row = ArtifactTable(run_id=run_id, kind=kind, path=path)
            session.add(row)
        row.sha256, row.size_bytes = sha256, size_bytes


def _upsert(
    db: Database,
    table: type[TurnMetricTable] | type[StepMetricTable],
    run_id: int,
    rows: Sequence[TurnMetric] | Sequence[StepMetric],
) -> None:
    values = _values(run_id, rows)
    if values:
        with db.session() as session:
            _write(session, get_run(session, run_id), table, values)


def _values(run_id: int, rows: Sequence[TurnMetric] | Sequence[StepMetric]) -> list[dict[str, Any]]:
    values = [{"run_id": run_id, **dataclasses.asdict(row)} for row in rows]
    for entry in values:
        _check_finite(entry)
    return values


def _write(
    session: Session,
    run: RunTable,
    table: type[TurnMetricTable] | type[StepMetricTable],
    values: list[dict[str, Any]],
) -> None:
    """Write the rows; those of turns are numbered on, so that a reader sees them as new."""
    if not values:
        return
    if table is TurnMetricTable:
        for number, entry in enumerate(values, start=run.metric_rows + 1):
            entry["number"] = number
        run.metric_rows += len(values)
    session.execute(_insert_or_replace(session, table), values)


def _insert_or_replace(
    session: Session, table: type[TurnMetricTable] | type[StepMetricTable]
) -> Any:
    """Return "insert, or update the row with that key", as each database spells it."""
    spelling = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    statement = spelling.insert(table)
    columns = table.__table__.columns
    keys = [column.name for column in columns if column.primary_key]
    others: dict[str, ColumnElement[Any]] = {
        column.name: statement.excluded[column.name] for column in columns if not column.primary_key
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def _check_finite(entry: dict[str, Any]) -> None:
    for name, value in entry.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise DataError(
                f"{name} is {value}",
                where=f"run {entry['run_id']}, step {entry['step']}",
                remedy="Lower the learning rate, or look for damaged data in that step.",
            )
