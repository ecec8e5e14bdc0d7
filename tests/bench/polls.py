"""How long a look at a live run takes, with few and with many rows of figures on record.

A look is what the run's page does every
two seconds after a step has been recorded: read what is new, take it into the curves, draw every
chart, and turn it into what goes to the browser.
"""

import os
import statistics
import tempfile
import time

from app import connection
from app.components.charts import figure_json
from app.components.charts_turns import TurnView
from app.components.run_charts import chart_rows
from app.metrics import run_metrics
from db import commands, queries
from db.engine import Database
from db.records import Run, StepMetric, TurnMetric
from tests.bench.runs import FEW_ROWS, MANY_ROWS
from trainer.config import TrainConfig

CONVERSATIONS, TURNS = 5, 4
"""Of each step: 20 rows."""

LOOKS = 15


def polls() -> dict[str, float]:
    """Return the seconds of a look with few and with many rows on record."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["EVERYTURN_HOME"] = home  # what the app reads its settings from
        os.environ.pop("DATABASE_URL", None)
        database = connection.database()
        return {
            "few_rows_s": look_s(database, FEW_ROWS),
            "many_rows_s": look_s(database, MANY_ROWS),
        }


def look_s(database: Database, rows: int) -> float:
    """Return the median seconds of a look at a run with so many rows, each after a new step."""
    config = TrainConfig(epochs=50)
    run = commands.create_run(
        database,
        name=f"{rows} rows",
        config=config.to_json(),
        base_model=config.base_model,
        conversations=CONVERSATIONS,
        turns=CONVERSATIONS * TURNS,
        start_token=f"{rows}",
    )
    steps = rows // (CONVERSATIONS * TURNS)
    epoch_steps = max(steps // config.epochs, 1)
    for step in range(steps):
        _record(database, run, step, step // epoch_steps)
    _look(database, run, config)
    seconds: list[float] = []
    for step in range(steps, steps + LOOKS):
        _record(database, run, step, step // epoch_steps)
        started = time.perf_counter()
        _look(database, run, config)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _look(database: Database, run: Run, config: TrainConfig) -> int:
    """Do what the page does; return how many characters go to the browser."""
    metrics = run_metrics(queries.run(database, run.id))
    view = TurnView(turns=metrics.turns, last_step=metrics.last_step or 0)
    return sum(
        len(figure_json(chart.figure)) for row in chart_rows(metrics, view, config) for chart in row
    )


def _record(database: Database, run: Run, step: int, epoch: int) -> None:
    turns = [_turn(step, epoch, c, t) for c in range(CONVERSATIONS) for t in range(TURNS)]
    commands.add_turn_metrics(database, run.id, turns)
    commands.add_step_metric(database, run.id, _step(step, epoch))


def _turn(step: int, epoch: int, conversation: int, turn: int) -> TurnMetric:
    wave = ((step * 37 + conversation * 11 + turn * 5) % 101) / 101  # any numbers that vary
    return TurnMetric(
        epoch=epoch,
        step=step,
        conversation=conversation,
        turn=turn,
        tokens=400,
        response_tokens=40,
        reward=wave,
        advantage=wave - 0.5,
        loss_mean=0.5 - wave,
        loss_sum=40 * (0.5 - wave),
        ratio_mean=0.9 + wave / 5,
        clipfrac=wave / 3,
        clipfrac_binding=wave / 5,
        kl_mean=wave / 10,
        logprob_mean=-2 + epoch / 100 + wave / 10,
        kl_base=wave / 9,
    )


def _step(step: int, epoch: int) -> StepMetric:
    wave = ((step * 53) % 97) / 97
    return StepMetric(
        step=step,
        epoch=epoch,
        loss=wave,
        grad_norm=1 + wave,
        lr=1e-4,
        kl=wave / 10,
        kl_base=wave / 8,
        tokens_per_s=900 + 100 * wave,
        memory_bytes=2_000_000_000,
        seconds=2.0,
        cpu_percent=90.0,
        gpu_percent=None,
    )
