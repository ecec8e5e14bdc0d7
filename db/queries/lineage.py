"""Which runs came before and after a run, and the figures of one."""

from sqlalchemy import func, select

from db.engine import Database
from db.models import RunTable, StepMetricTable, TurnMetricTable
from db.queries.runs import run_not_found, run_record
from db.records import Round, Run


def ancestors(db: Database, run_id: int) -> tuple[Round, ...]:
    """Return the rounds before a run, oldest first, as they stood when it was launched.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    with db.read_session() as session:
        row = session.get(RunTable, run_id)
        if row is None:
            raise run_not_found(run_id)
        return tuple(Round(**entry) for entry in row.ancestors)


def next_rounds(db: Database, run_id: int) -> list[Run]:
    """Return the runs that started from this run's adapter, oldest first."""
    statement = select(RunTable).where(RunTable.parent_id == run_id).order_by(RunTable.id)
    with db.read_session() as session:
        return [run_record(row) for row in session.scalars(statement)]


def mean_score(db: Database, run_id: int) -> float | None:
    """Return the mean score of the turns in a run's first epoch; None if none has one."""
    statement = select(func.avg(TurnMetricTable.reward)).where(
        TurnMetricTable.run_id == run_id, TurnMetricTable.epoch == 0
    )
    with db.read_session() as session:
        return session.scalar(statement)


def last_kl_base(db: Database, run_id: int) -> float | None:
    """Return a run's mean KL to the base model in its last step; None if it was not measured."""
    statement = (
        select(StepMetricTable.kl_base)
        .where(StepMetricTable.run_id == run_id)
        .order_by(StepMetricTable.step.desc())
        .limit(1)
    )
    with db.read_session() as session:
        return session.scalar(statement)
