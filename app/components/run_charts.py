"""The run page's charts: what to show, whose lines, and each with its sentence below it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import streamlit as st

from app import auth, data
from app.components.charts import Chart, figure_json
from app.components.charts_learning import heat_chart, learning_chart, signals_chart
from app.components.charts_live import live_chart
from app.components.charts_steps import (
    busy_chart,
    grad_norm_chart,
    kl_chart,
    memory_chart,
    speed_chart,
)
from app.components.charts_turns import TurnView, clip_chart, loss_chart, ratio_chart
from app.components.label_blind import hides_from
from app.components.learning import cells_of
from app.components.live_figure import HEIGHT
from app.metrics import RunMetrics, conversation_rows
from db.records import Run
from trainer.config import LossName, OldLogprobs, TrainConfig

BY_POSITION = "by turn position"
ONE_CONVERSATION = "one conversation"

MOST_DRAWN = 16
"""How many pages of charts are kept as they are drawn."""


def run_charts(
    run: Run, metrics: RunMetrics, config: TrainConfig, titles: Mapping[int, str]
) -> None:
    """Show every chart of a run, two in a row, below the choice of whose turns they show.

    Who scores blind sees those that tell nobody's scores.
    """
    is_blind = hides_from(auth.current_user(), data.project_settings())
    if is_blind:
        st.caption(
            ":material/visibility_off: Scoring is blind: charts that show how single turns or "
            "positions were scored are hidden."
        )
        chosen = None
    else:
        chosen = _choose_conversation(metrics, titles)
    title = titles.get(chosen or 0, "")
    scope = f"run-{run.id}-{chosen}"
    for row in _drawn(run.id, metrics, config, chosen, title, is_blind=is_blind):
        _row(row, scope)


@lru_cache(maxsize=MOST_DRAWN)
def _drawn(
    run_id: int,
    metrics: RunMetrics,
    config: TrainConfig,
    conversation: int | None,
    title: str,
    *,
    is_blind: bool,
) -> list[list[Chart]]:
    """Draw a run's charts; where nothing is new, whoever looks gets those that are there."""
    rows = None if conversation is None else conversation_rows(run_id, conversation)
    view = TurnView(
        turns=metrics.turns,
        last_step=metrics.last_step or 0,
        conversation=rows,
        title=title,
        tells_scores=not is_blind,
    )
    return chart_rows(metrics, view, config)


def chart_rows(metrics: RunMetrics, view: TurnView, config: TrainConfig) -> list[list[Chart]]:
    """Return the charts as the page shows them, row by row.

    Where scores are not told, those go that are drawn from them turn by turn: the loss is the
    advantage, turned over; heat map and signals part turns by its sign.
    """
    clips = config.loss is LossName.PPO
    constant_old = config.old_logprobs is OldLogprobs.CONSTANT
    bounds = (config.clip_low, config.clip_high) if clips else None
    ratio = ratio_chart(view, bounds, constant_old=constant_old)
    heat = (
        heat_chart(metrics.cells)
        if view.conversation is None
        else heat_chart(cells_of(view.conversation), "this conversation")
    )
    learning = learning_chart(metrics.learning, metrics.cells)
    clip = [clip_chart(view)] if clips else []
    loss = loss_chart(view, weighs_scores=config.loss is not LossName.CROSS_ENTROPY)
    of_turns = (
        [[learning, heat], [loss, ratio], [*clip, signals_chart(metrics.first)]]
        if view.tells_scores
        else [[learning], [ratio, *clip]]
    )
    steps = metrics.steps
    busy = busy_chart(steps)
    return [
        *of_turns,
        [
            kl_chart(steps, config.max_kl, constant_old=constant_old),
            grad_norm_chart(steps, config.grad_clip_norm),
        ],
        [speed_chart(steps), memory_chart(steps), *([busy] if busy else [])],
    ]


def show_chart(chart: Chart, scope: str = "") -> None:
    """Show one chart with its title above and its guide below.

    Args:
        chart: What to show.
        scope: Names what the chart is about; the reader's zoom and legend choices end when it
            changes.
    """
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{chart.title}**")
        if chart.instead:
            st.info(chart.instead, icon=":material/hourglass_empty:")
        else:
            if chart.reading:
                st.markdown(chart.reading)
            live_chart(
                figure_json(chart.figure),
                scope=scope or chart.key,
                key=f"chart_{chart.key}",
                alt=chart.alt,
                height=HEIGHT,
            )
        st.caption(chart.guide)


def _choose_conversation(metrics: RunMetrics, titles: Mapping[int, str]) -> int | None:
    """Ask whose lines the charts per turn show; None stands for all conversations."""
    choice = st.radio(
        "The charts per turn show",
        [BY_POSITION, ONE_CONVERSATION],
        horizontal=True,
        key="view",
        bind="query-params",
        help="By turn position: the median over all conversations of a step, with the middle half "
        "as a band. One conversation: its own values. The other charts are about all "
        "conversations either way. Drag in a chart to zoom, double-click to go back; point at it "
        "to save it as PNG or SVG.",
    )
    if choice != ONE_CONVERSATION:
        return None
    return st.selectbox(
        "Conversation",
        sorted({conversation for conversation, _ in metrics.first}),
        format_func=lambda position: titles.get(position, f"conversation {position + 1}"),
        key="chart_conversation",
        width=340,
    )


def _row(charts: Sequence[Chart], scope: str) -> None:
    for column, chart in zip(st.columns(len(charts)), charts, strict=True):
        with column:
            show_chart(chart, scope)
