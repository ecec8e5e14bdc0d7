"""Runs and their figures.

Reads of runs first let `trainer.runs.reconcile` find dead processes, so that no page ever shows a
run as alive that is not.
"""

from datetime import datetime

from app.connection import database
from app.data.reading import read
from db import queries
from db.enums import RunStatus
from db.records import NewTurnMetrics, Round, Run, StepMetric, TurnMetric
from trainer.runs.lineage import chain_of
from trainer.runs.reconcile import reconcile


def run(run_id: int) -> Run:
    """Return one run.

    Raises:
        NotFoundError: if there is none with this id.
    """
    reconcile_runs()
    return read(queries.run, run_id)


def runs() -> list[Run]:
    """Return all runs, newest first."""
    reconcile_runs()
    return read(queries.runs)


def runs_with_status(*statuses: RunStatus) -> list[Run]:
    """Return the runs in any of these states, oldest first."""
    reconcile_runs()
    return read(queries.runs_with_status, *statuses)


def runs_ended_after(moment: datetime) -> list[Run]:
    """Return the runs that have ended since a moment, the latest end first."""
    reconcile_runs()
    return read(queries.runs_ended_after, moment)


def queue_position(run_id: int) -> int | None:
    """Return how many runs wait before this one; None if it does not wait itself."""
    return read(queries.queue_position, run_id)


def turn_metrics(run_id: int, *, conversation: int | None = None) -> list[TurnMetric]:
    """Return a run's per-turn figures, of all conversations or of one, in order of steps.

    Not cached: there may be many. `app.metrics` keeps what the charts need.
    """
    return queries.turn_metrics(database(), run_id, conversation=conversation)


def new_turn_metrics(run_id: int, *, mark: int) -> NewTurnMetrics:
    """Return a run's per-turn figures that were written behind a mark; 0 asks for all of them."""
    return queries.new_turn_metrics(database(), run_id, mark=mark)


def step_metrics(run_id: int, *, after_step: int = -1) -> list[StepMetric]:
    """Return a run's per-step figures after `after_step`, in order."""
    return queries.step_metrics(database(), run_id, after_step=after_step)


def latest_step_metrics(run_id: int, *, most: int) -> list[StepMetric]:
    """Return a run's figures of its last optimiser steps, at most so many, in order."""
    return read(queries.latest_step_metrics, run_id, most=most)


def rounds(run_id: int) -> tuple[Round, ...]:
    """Return the chain of runs that started from each other, up to and with this one."""
    return read(chain_of, run_id)


def next_rounds(run_id: int) -> list[Run]:
    """Return the runs that started from this run's adapter, oldest first."""
    return read(queries.next_rounds, run_id)


def reconcile_runs() -> None:
    """Make true what the database says of runs, at most once in the time that rows are kept."""
    read(reconcile)
