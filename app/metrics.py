"""A run's figures in this session: read once, then only what is new."""

from dataclasses import dataclass

import streamlit as st

from app import data, state
from app.components.turn_series import learning_signal
from db.records import Run, StepMetric, TurnMetric


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetrics:
    """All figures of one attempt of a run, as far as they have been read."""

    run_id: int
    attempt: int
    turns: tuple[TurnMetric, ...]
    steps: tuple[StepMetric, ...]


def run_metrics(run: Run, *, fresh: bool = True) -> RunMetrics:
    """Return the run's figures; the database is asked only for the last known step and later.

    The last step is read again because its rows may have been incomplete.

    Args:
        run: The run.
        fresh: False returns what this session has already read, if that is anything.
    """
    known = state.RUN_METRICS.get()
    if known is None or (known.run_id, known.attempt) != (run.id, run.attempt):
        known = RunMetrics(run_id=run.id, attempt=run.attempt, turns=(), steps=())
    elif known.turns and not fresh:
        return known
    last_turn = max((row.step for row in known.turns), default=0)
    last_step = max((row.step for row in known.steps), default=0)
    metrics = RunMetrics(
        run_id=run.id,
        attempt=run.attempt,
        turns=(
            *(row for row in known.turns if row.step < last_turn),
            *data.turn_metrics(run.id, after_step=last_turn - 1),
        ),
        steps=(
            *(row for row in known.steps if row.step < last_step),
            *data.step_metrics(run.id, after_step=last_step - 1),
        ),
    )
    state.RUN_METRICS.set(metrics)
    return metrics


def learning_of(run: Run) -> float | None:
    """Return how far the run moved as its scores ask, in nats per token; None if unknown yet."""
    if run.status.has_ended:
        return _final_learning(run.id, run.attempt, data.settings().database_url)
    return learning_signal(data.turn_metrics(run.id))


@st.cache_data(max_entries=1000, show_spinner=False)
def _final_learning(run_id: int, attempt: int, database_url: str) -> float | None:
    del attempt, database_url  # they are part of the cache's key
    return learning_signal(data.turn_metrics(run_id))
