"""Charts with one line for each turn position: loss, ratio and clip fraction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.components.charts import Chart, first_to_last, signed
from app.components.columns import Points
from app.components.live_figure import (
    LiveFigure,
    beside_each_other,
    draw_limit,
    fit_steps,
    line,
    line_mode,
    live_figure,
    x_axis,
)
from app.components.palette import translucent, turn_colour, turn_marker
from app.components.turn_series import MEASURES, TurnValue, of_conversation
from db.records import TurnMetric

BAND_OPACITY = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """Whose lines are drawn: those of one conversation, or medians over all.

    Attributes:
        turns: For each of `MEASURES` the curve of each turn position over all conversations.
        last_step: The last optimiser step on record, from 0.
        conversation: The rows of the one conversation to draw; None draws the medians.
        title: That conversation's title.
        tells_scores: Whether hover labels tell rewards and advantages.
    """

    turns: Mapping[str, Mapping[int, Points]]
    last_step: float
    conversation: Sequence[TurnMetric] | None = None
    title: str = ""
    tells_scores: bool = True


def loss_chart(view: TurnView, *, weighs_scores: bool = True) -> Chart:
    """Return the loss of each turn over the optimiser steps.

    Args:
        view: Whose lines are drawn.
        weighs_scores: Whether the loss is the ratio times the advantage, not cross-entropy.
    """
    figure = live_figure("loss, mean over tokens")
    series = _draw_turns(figure, view, "loss")
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
    view: TurnView, bounds: tuple[float, float] | None, *, constant_old: bool = False
) -> Chart:
    """Return each turn's mean probability ratio, new over old, with the clip bounds drawn in.

    Args:
        view: Whose lines are drawn.
        bounds: Lower and upper clip bound; None if the loss does not clip.
        constant_old: Whether the old log-probabilities are the recipe's constant.
    """
    figure = live_figure("ratio, mean over tokens")
    for bound in bounds or ():
        draw_limit(figure, bound, f"clip at {bound:g}", view.last_step)
    series = _draw_turns(figure, view, "ratio")
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


def clip_chart(view: TurnView) -> Chart:
    """Return two panels side by side: tokens outside the clip band, tokens the clip stops."""
    figure = live_figure("share of tokens")
    beside_each_other(figure, x_axis("step · outside"), x_axis("step · stopped"))
    figure.layout["yaxis"] |= {"rangemode": "tozero", "tickformat": ".0%"}
    outside = _draw_turns(figure, view, "outside")
    _draw_turns(figure, view, "binding", axis="x2")
    return Chart(
        key="clip",
        title="Clip fraction per turn",
        figure=figure,
        guide="Left: tokens whose ratio lies outside the band. Right: those whose gradient the "
        "clip really removes. 0 while the ratio is 1 is necessary, not a fault. Mostly clipped "
        "from early on means: lower the learning rate or the number of epochs.",
        alt=_describe("Share of tokens outside the clip band", outside),
    )


def hover_text(title: str) -> str:
    """Return somebody's title as plain text for a hover label."""
    return title.replace("<", "&lt;")


def _draw_turns(
    figure: LiveFigure, view: TurnView, measure: str, axis: str = "x"
) -> dict[int, list[float]]:
    """Draw one line a turn; return the drawn values by turn position."""
    narrow = "xaxis2" in figure.layout
    fit_steps(
        figure.layout["xaxis2" if axis == "x2" else "xaxis"],
        view.last_step,
        most_ticks=6 if narrow else 12,
    )
    figure.layout["legend"]["title"] = {"text": "turn"}
    if view.conversation is None:
        curves = view.turns[measure]
        for turn, points in curves.items():
            figure.traces += _position_traces(turn, points, view, measure, axis)
        return {turn: points[measure].tolist() for turn, points in curves.items()}
    value = MEASURES[measure]
    lines = of_conversation(view.conversation, value)
    for turn, members in lines.items():
        figure.traces.append(_conversation_trace(turn, members, view, measure, axis))
    return {turn: [value(member) for member in members] for turn, members in lines.items()}


def _position_traces(
    turn: int, points: Points, view: TurnView, measure: str, axis: str
) -> list[dict[str, Any]]:
    low, high = f"{measure}_low", f"{measure}_high"
    group = f"turn {turn + 1}"
    about = ["epoch", low, high, "conversations"]
    told = "%{customdata[3]} conversations"
    if view.tells_scores:
        about += ["advantage", "reward"]
        has_rewards = np.isfinite(points["reward"]).all()
        told += "<br>mean reward %{customdata[5]:+.2f}, " if has_rewards else "<br>"
        told += "mean advantage %{customdata[4]:+.3f}"
    median = (
        line(points, measure, about=about)
        | _line_style(turn, len(points), measure, axis)
        | {
            "hovertemplate": f"<b>{group}</b>, step %{{x}}, epoch %{{customdata[0]}}<br>"
            "median %{y:.4f}, middle half %{customdata[1]:.4f} to %{customdata[2]:.4f}<br>"
            f"{told}<extra></extra>",
        }
    )
    if (points[low] == points[high]).all():
        return [median]
    edge = {"mode": "lines", "line": {"width": 0}, "legendgroup": group, "xaxis": axis,
            "showlegend": False, "hoverinfo": "skip"}  # fmt: skip
    fill = {"fill": "tonexty", "fillcolor": translucent(turn_colour(turn), BAND_OPACITY)}
    return [
        line(points, low) | edge | {"uid": f"{measure}-{turn}-low"},
        line(points, high) | edge | fill | {"uid": f"{measure}-{turn}-high"},
        median,
    ]


def _conversation_trace(
    turn: int, members: list[TurnMetric], view: TurnView, measure: str, axis: str
) -> dict[str, Any]:
    value: TurnValue = MEASURES[measure]
    title = hover_text(view.title)
    return {
        "type": "scatter",
        "x": [row.step + 1 for row in members],
        "y": [value(row) for row in members],
        "cliponaxis": False,
        "customdata": [
            (row.epoch + 1, title, signed(row.reward, 2), signed(row.advantage),
             row.response_tokens)
            for row in members
        ],
        "hovertemplate": f"<b>%{{customdata[1]}}, turn {turn + 1}</b><br>"
        "step %{x}, epoch %{customdata[0]}: %{y:.4f}<br>"
        "reward %{customdata[2]}, advantage %{customdata[3]}<br>"
        "%{customdata[4]} reply tokens<extra></extra>",
    } | _line_style(turn, len(members), measure, axis)  # fmt: skip


def _line_style(turn: int, points: int, measure: str, axis: str) -> dict[str, Any]:
    return {
        "uid": f"{measure}-{turn}",
        "mode": line_mode(points),
        "name": str(turn + 1),
        "legendgroup": f"turn {turn + 1}",
        "showlegend": axis == "x",
        "xaxis": axis,
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
