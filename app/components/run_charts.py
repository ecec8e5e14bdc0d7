"""The run page's charts: what to show, whose lines, and each with its sentence below it."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app import state
from app.components.charts import Chart
from app.components.charts_steps import grad_norm_chart, kl_chart, learning_chart, speed_chart
from app.components.charts_turns import TurnView, clip_chart, loss_chart, ratio_chart
from app.metrics import RunMetrics
from db.records import TurnMetric
from trainer.config import LossName, OldLogprobs, TrainConfig

BY_POSITION = "by turn position"
ONE_CONVERSATION = "one conversation"


def run_charts(
    metrics: RunMetrics, config: TrainConfig, titles: Mapping[int, str], *, live: bool
) -> None:
    """Show every chart of a run, two in a row, below the choices that concern them all."""
    rows = metrics.turns
    clips = config.loss is LossName.PPO
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = _choose_view(rows, titles, clips=clips)
        if live:
            st.space("stretch")
            st.toggle(
                "Pause the charts",
                key=state.CHARTS_PAUSED.key,
                help="Dragging in a chart zooms, a double click goes back. Each new point draws the charts anew, which ends a zoom. Pause them to look "
                "closely; the run goes on.",
            )
    bounds = (config.clip_low, config.clip_high) if clips else None
    weighs_scores = config.loss is not LossName.CROSS_ENTROPY
    _row([learning_chart(rows), loss_chart(rows, view, weighs_scores=weighs_scores)])
    constant_old = config.old_logprobs is OldLogprobs.CONSTANT
    ratio = ratio_chart(rows, view, bounds, constant_old=constant_old)
    _row([ratio, *([clip_chart(rows, view)] if clips else [])])
    steps = metrics.steps
    _row(
        [
            kl_chart(steps, config.max_kl, constant_old=constant_old),
            grad_norm_chart(steps, config.grad_clip_norm),
            speed_chart(steps),
        ]
    )


def show_chart(chart: Chart) -> None:
    """Show one chart with its title above and its guide below."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{chart.title}**")
        if chart.instead:
            st.info(chart.instead, icon=":material/hourglass_empty:")
        else:
            # No bar of tools: it would lie over legend and points. Dragging zooms, a double click
            # goes back.
            st.plotly_chart(
                chart.figure,
                key=f"chart_{chart.key}",
                alt=chart.alt,
                config={"displayModeBar": False},
            )
        st.caption(chart.guide)


def _choose_view(rows: Sequence[TurnMetric], titles: Mapping[int, str], *, clips: bool) -> TurnView:
    """Ask whose lines the charts per turn show."""
    choice = st.segmented_control(
        "Loss, ratio and clip fraction show" if clips else "Loss and ratio show",
        [BY_POSITION, ONE_CONVERSATION],
        default=BY_POSITION,
        required=True,
        key="view",
        bind="query-params",
        help="By turn position: the median over all conversations of a step, with the middle half "
        "as a band. One conversation: its own values. The other charts are about all conversations either way.",
    )
    if choice != ONE_CONVERSATION:
        return TurnView(conversation=None, titles=titles)
    positions = sorted({row.conversation for row in rows})
    chosen = st.selectbox(
        "Conversation",
        positions,
        format_func=lambda position: titles.get(position, f"conversation {position + 1}"),
        key="chart_conversation",
        width=340,
    )
    return TurnView(conversation=chosen, titles=titles)


def _row(charts: Sequence[Chart]) -> None:
    for column, chart in zip(st.columns(len(charts)), charts, strict=True):
        with column:
            show_chart(chart)
