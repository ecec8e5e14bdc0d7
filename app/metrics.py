"""A run's figures, read once for all sessions of this process, then only what is new."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby

import streamlit as st

from app import data
from app.components.columns import Columns, Points
from app.components.learning import LearningSeries, Movement, TurnPlace, last_epoch, of_epoch
from app.components.turn_series import MEASURES, PositionSeries
from db.records import Run, StepMetric, TurnMetric

STORES = 24
"""How many runs' figures one process keeps at hand."""

STEP_CURVES = (
    *("kl", "kl_base", "grad_norm"),
    *("tokens_per_s", "memory_bytes", "cpu_percent", "gpu_percent"),
)
"""What is drawn of each optimiser step."""

_ABOUT = ("step", "epoch", "loss", "lr")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunMetrics:
    """What the charts show of one attempt of a run, thinned to what they have room for.

    Attributes:
        turns: For each of `MEASURES`, the curve of each turn position.
        learning: How the replies of each step have moved.
        cells: The same by (turn position, epoch).
        first: Each turn's row when the run first saw it.
        steps: For each of `STEP_CURVES` its curve; empty where nothing was measured.
        last_step: The last optimiser step on record, from 0; None before the first.
    """

    run_id: int
    attempt: int
    turns: Mapping[str, Mapping[int, Points]]
    learning: Points
    cells: Mapping[TurnPlace, Movement]
    first: Mapping[TurnPlace, TurnMetric]
    steps: Mapping[str, Points]
    last_step: int | None

    @property
    def signal(self) -> float | None:
        """How far the run moved as its scores ask in its last epoch, in nats per token.

        None before a second epoch has begun: in the first there is nothing to compare with.
        """
        epoch = last_epoch(self.cells)
        return of_epoch(self.cells, epoch).signal if epoch else None


class _Store:
    """The figures of one run, which grow with each look at the database."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id
        self._lock = threading.Lock()
        self._begin(attempt=0)

    def look(self, run: Run) -> RunMetrics:
        """Read what is new and return all that is known; the same object if nothing is new."""
        with self._lock:
            if run.attempt != self._attempt:
                self._begin(run.attempt)
            grew = self._read_turns() | self._read_steps()
            if grew or self._known is None:
                self._known = self._snapshot()
            return self._known

    def followed(self, conversation: int) -> list[TurnMetric]:
        """Return the rows of one conversation; from the first call on they grow with the rest."""
        with self._lock:
            if conversation not in self._followed:
                rows = data.turn_metrics(self._run_id, conversation=conversation)
                self._followed[conversation] = {(row.step, row.turn): row for row in rows}
            return list(self._followed[conversation].values())

    def _begin(self, attempt: int) -> None:
        """Forget everything: it is read anew from the beginning."""
        self._attempt = attempt
        self._mark = 0
        self._positions = PositionSeries()
        self._learning = LearningSeries()
        self._steps = Columns([field.name for field in fields(StepMetric)])
        self._last: dict[TurnPlace, TurnMetric] = {}
        self._followed: dict[int, dict[tuple[int, int], TurnMetric]] = {}
        self._known: RunMetrics | None = None

    def _read_turns(self) -> bool:
        new = data.new_turn_metrics(self._run_id, mark=self._mark)
        if not new.rows:
            return False
        if self._last and min(row.step for row in new.rows) < self._last_step():
            # A step from before was measured again: the run went back to a checkpoint.
            self._begin(self._attempt)
            return self._read_turns()
        self._mark = new.mark
        self._take(new.rows)
        return True

    def _take(self, rows: Sequence[TurnMetric]) -> None:
        in_order = sorted(rows, key=lambda row: row.step)
        for step, members in groupby(in_order, key=lambda row: row.step):
            if not self._last or step != self._last_step():
                self._last = {}
            self._last |= {(row.conversation, row.turn): row for row in members}
            whole = list(self._last.values())
            self._positions.put(whole)
            self._learning.put(whole)
        for row in rows:
            if row.conversation in self._followed:
                self._followed[row.conversation][row.step, row.turn] = row

    def _last_step(self) -> int:
        return next(iter(self._last.values())).step

    def _read_steps(self) -> bool:
        last = int(self._steps.last("step")) if len(self._steps) else -1
        rows = data.step_metrics(self._run_id, after_step=last)
        for row in rows:
            self._steps.append(asdict(row))
        return bool(rows)

    def _snapshot(self) -> RunMetrics:
        return RunMetrics(
            run_id=self._run_id,
            attempt=self._attempt,
            turns={measure: self._positions.points(measure) for measure in MEASURES},
            learning=self._learning.points(),
            cells=self._learning.cells(),
            first=dict(self._learning.first),
            steps={name: self._steps.points(name, about=_ABOUT) for name in STEP_CURVES},
            last_step=int(self._steps.last("step")) if len(self._steps) else None,
        )


def run_metrics(run: Run) -> RunMetrics:
    """Return the run's figures up to now; the database is asked only for what is new."""
    return _store(data.settings().database_url, run.id).look(run)


def conversation_rows(run_id: int, conversation: int) -> list[TurnMetric]:
    """Return the figures of one conversation's turns, given by its position in the run's data."""
    return _store(data.settings().database_url, run_id).followed(conversation)


@st.cache_resource(max_entries=STORES, show_spinner=False)
def _store(database_url: str, run_id: int) -> _Store:
    del database_url  # part of the cache's key: another database has other runs
    return _Store(run_id)


def learning_of(run: Run) -> float | None:
    """Return how far the run moved as its scores ask, in nats per token; None if unknown yet."""
    if run.status.has_ended:
        return _final_learning(run, data.settings().database_url)
    return run_metrics(run).signal


@st.cache_data(
    max_entries=1000, show_spinner=False, hash_funcs={Run: lambda run: (run.id, run.attempt)}
)
def _final_learning(run: Run, database_url: str) -> float | None:
    del database_url  # part of the cache's key
    return run_metrics(run).signal
