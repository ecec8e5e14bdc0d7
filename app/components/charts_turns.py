"""Charts with one line for each turn position: loss, ratio and clip fraction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.components.charts import (
    Chart,
    base_figure,
    draw_limit,
    first_to_last,
    line_mode,
    signed,
    step_axis,
)
from app.components.palette import translucent, turn_colour, turn_marker
from app.components.turn_series import PositionPoint, TurnValue, by_position, of_conversation
from db.records import TurnMetric

BAND_OPACITY = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """Whose lines are drawn: those of one conversation, or medians over all.

    Attributes:
        conversation: Position in the run's data; None draws the median and the middle half of
            all conversations.
        titles: Title of each conversation by its position.
    """

    conversation: int | None
    titles: Mapping[int, str]

    def title(self, conversation: int) -> str:
        """Return a conversation's title as plain text for a hover label."""
        name = self.titles.get(conversation) or f"conversation {conversation + 1}"
        return name.replace("<", "&lt;")


def loss_chart(rows: Sequence[TurnMetric], view: TurnView, *, weighs_scores: bool = True) -> Chart:
    """Return the loss of each turn over the optimiser steps.

    Args:
        rows: The run's figures.
        view: Whose lines are drawn.
        weighs_scores: Whether the loss is the ratio times the advantage, not cross-entropy.
    """
    figure = base_figure("loss, mean over tokens")
    series = _draw_turns(figure, rows, view, lambda row: row.loss_mean)
    return Chart(
        key="loss",
        title="Loss per turn",
        figure=figure,
        guide=(
            "The loss is no measure of progress. It is minus the turn's advantage times the (clipped) ratio, "
            "so a line's height shows how these replies were scored: below 0 for replies to "
            "favour, above 0 for replies to avoid. Worry about sudden jumps, or a line that keeps "
            "rising."
            if weighs_scores
            else "How unlikely the model finds the replies, whatever their scores: falling means "
            "that it learns to repeat them, the badly scored ones as well."
        ),
        alt=_describe("Loss", series),
    )


def ratio_chart(
    rows: Sequence[TurnMetric],
    view: TurnView,
    bounds: tuple[float, float] | None,
    *,
    constant_old: bool = False,
) -> Chart:
    """Return each turn's mean probability ratio, new over old, with the clip bounds drawn in.

    Args:
        rows: The run's figures.
        view: Whose lines are drawn.
        bounds: Lower and upper clip bound; None if the loss does not clip.
        constant_old: Whether the old log-probabilities are the recipe's constant.
    """
    figure = base_figure("ratio, mean over tokens")
    for bound in bounds or ():
        draw_limit(figure, bound, f"clip at {bound:g}", [row.step for row in rows])
    series = _draw_turns(figure, rows, view, lambda row: row.ratio_mean)
    return Chart(
        key="ratio",
        title="Ratio per turn",
        figure=figure,
        guide=(
            "How likely each reply is, against the recipe's constant (e to the −0.5, about 0.61, "
            "for every token): so it starts wherever the model stands, not at 1."
            if constant_old
            else "How much likelier each reply has become than under the old policy. Where the old "
            "log-probabilities are recomputed it starts at exactly 1, necessarily. Lines that "
            "leave the band and stay out mean that steps are too large."
        ),
        alt=_describe("Probability ratio", series),
    )


def clip_chart(rows: Sequence[TurnMetric], view: TurnView) -> Chart:
    """Return two panels side by side: tokens outside the clip band, tokens the clip stops."""
    figure = base_figure("share of tokens")
    layout = figure.layout
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.04)
    figure.update_layout(layout)
    outside = _draw_turns(figure, rows, view, lambda row: row.clipfrac, column=1)
    _draw_turns(figure, rows, view, lambda row: row.clipfrac_binding, column=2)
    for column, name in ((1, "step · outside the band"), (2, "step · stopped by the clip")):
        title = {"text": name, "standoff": 10}
        figure.update_xaxes(title=title, tickformat="d", automargin=True, col=column)
    figure.update_yaxes(rangemode="tozero", tickformat=".0%", automargin=True)
    return Chart(
        key="clip",
        title="Clip fraction per turn",
        figure=figure,
        guide="Left: tokens whose ratio lies outside the band. Right: those whose gradient the "
        "clip really removes. 0 while the ratio is 1 is necessary, not a fault. Mostly clipped "
        "from early on means: lower the learning rate or the number of epochs.",
        alt=_describe("Share of tokens outside the clip band", outside),
    )


def _draw_turns(
    figure: go.Figure,
    rows: Sequence[TurnMetric],
    view: TurnView,
    value: TurnValue,
    column: int | None = None,
) -> dict[int, list[float]]:
    """Draw one line a turn; return the drawn values by turn position."""
    step_axis(figure, [row.step for row in rows], most_ticks=12 if column is None else 6)
    figure.update_layout(legend_title_text="turn")
    row = None if column is None else 1
    legend = column != 2
    if view.conversation is None:
        series = by_position(rows, value)
        for turn, points in series.items():
            for trace in _position_traces(turn, points, legend):
                figure.add_trace(trace, row=row, col=column)
        return {turn: [point.median for point in points] for turn, points in series.items()}
    lines = of_conversation(rows, view.conversation, value)
    for turn, members in lines.items():
        trace = _conversation_trace(turn, members, view, value, legend)
        figure.add_trace(trace, row=row, col=column)
    return {turn: [value(member) for member in members] for turn, members in lines.items()}


def _position_traces(turn: int, points: list[PositionPoint], legend: bool) -> list[go.Scatter]:
    steps = [point.step + 1 for point in points]
    group = f"turn {turn + 1}"
    line = go.Scatter(
        x=steps,
        y=[point.median for point in points],
        customdata=[
            (point.epoch + 1, point.low, point.high, point.conversations,
             signed(point.reward, 2), signed(point.advantage))
            for point in points
        ],
        hovertemplate="<b>" + group + "</b>, step %{x}, epoch %{customdata[0]}<br>"
        "median %{y:.4f}, middle half %{customdata[1]:.4f} to %{customdata[2]:.4f}<br>"
        "%{customdata[3]} conversations<br>"
        "mean reward %{customdata[4]}, mean advantage %{customdata[5]}<extra></extra>",
        **_line_style(turn, len(points), legend),
    )  # fmt: skip
    if all(point.low == point.high for point in points):
        return [line]
    edge = {"x": steps, "mode": "lines", "line": {"width": 0}, "legendgroup": group,
            "showlegend": False, "hoverinfo": "skip"}  # fmt: skip
    low = go.Scatter(y=[point.low for point in points], **edge)
    high = go.Scatter(
        y=[point.high for point in points],
        fill="tonexty",
        fillcolor=translucent(turn_colour(turn), BAND_OPACITY),
        **edge,
    )
    return [low, high, line]


def _conversation_trace(
    turn: int, members: list[TurnMetric], view: TurnView, value: TurnValue, legend: bool
) -> go.Scatter:
    return go.Scatter(
        x=[row.step + 1 for row in members],
        y=[value(row) for row in members],
        customdata=[
            (row.epoch + 1, view.title(row.conversation), signed(row.reward, 2),
             signed(row.advantage), row.response_tokens)
            for row in members
        ],
        hovertemplate=f"<b>%{{customdata[1]}}, turn {turn + 1}</b><br>"
        "step %{x}, epoch %{customdata[0]}: %{y:.4f}<br>"
        "reward %{customdata[2]}, advantage %{customdata[3]}<br>"
        "%{customdata[4]} reply tokens<extra></extra>",
        **_line_style(turn, len(members), legend),
    )  # fmt: skip


def _line_style(turn: int, points: int, legend: bool) -> dict[str, object]:
    return {
        "mode": line_mode(points),
        "cliponaxis": False,
        "name": str(turn + 1),
        "legendgroup": f"turn {turn + 1}",
        "showlegend": legend,
        "line": {"color": turn_colour(turn), "width": 2},
        "marker": {"symbol": turn_marker(turn), "size": 6, "color": turn_colour(turn)},
    }


def _describe(name: str, series: Mapping[int, Sequence[float]]) -> str:
    if not series:
        return f"{name} by optimiser step: no values yet."
    lines = "; ".join(
        f"turn {turn + 1}: {first_to_last(values)}" for turn, values in series.items()
    )
    return f"{name} by optimiser step, one line for each turn position. {lines}."
