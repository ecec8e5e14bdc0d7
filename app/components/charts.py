"""What all charts share: layout, limits, and the sentence that stands for the picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.components.palette import NEUTRAL

HEIGHT = 280
MOST_MARKERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with the words that belong to it.

    Attributes:
        key: Stable name of the chart on its page.
        guide: How to read it, and which shape should worry.
        alt: The picture in words, for those who cannot see it.
        reading: What it says now, in one sentence (Markdown); empty where the eye is enough.
        instead: Words that take the picture's place while it has nothing to show.
    """

    key: str
    title: str
    figure: go.Figure
    guide: str
    alt: str
    reading: str = ""
    instead: str = ""


def base_figure(y_title: str, *, x_title: str = "step") -> go.Figure:
    """Return an empty figure in the common layout; colours and fonts are the page's."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=HEIGHT,
        margin={"l": 8, "r": 12, "t": 16, "b": 8},
        hovermode="closest",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        xaxis={"title": {"text": x_title, "standoff": 10}, "tickformat": "d", "automargin": True},
        yaxis={
            "title": {"text": y_title, "standoff": 14},
            "automargin": True,
            "zeroline": True,
            "exponentformat": "none",
        },
    )
    return figure


def step_axis(figure: go.Figure, last_step: float, *, most_ticks: int = 12) -> None:
    """Make room for all optimiser steps, counted from 1; few steps get one tick each.

    The range itself stays open: a fixed one would end the reader's zoom whenever it grows.
    """
    figure.update_xaxes(
        autorangeoptions={"include": [0.5, last_step + 1.5]},
        dtick=1 if last_step < most_ticks else None,
    )


def line_mode(points: int) -> str:
    """Return the trace mode: markers vanish where there are too many to tell apart."""
    return "lines+markers" if points <= MOST_MARKERS else "lines"


def draw_limit(figure: go.Figure, value: float, name: str, last_step: float) -> None:
    """Draw a horizontal limit, as a trace, so that the y axis makes room for it."""
    figure.add_trace(
        go.Scatter(
            uid=name,
            x=[0.5, last_step + 1.5],
            y=[value, value],
            mode="lines",
            line={"dash": "dash", "width": 1.5, "color": NEUTRAL},
            name=name,
            showlegend=False,
            hovertemplate=f"{name}<extra></extra>",
        )
    )
    figure.add_annotation(
        text=name, x=1, xref="paper", xanchor="right", y=value, yanchor="bottom",
        showarrow=False, font={"size": 11},
    )  # fmt: skip


def signed(value: float | None, digits: int = 3) -> str:
    """Return a number with its sign, or a dash where there is none."""
    return "–" if value is None or not math.isfinite(value) else f"{value:+.{digits}f}"


def first_to_last(values: Sequence[float], digits: int = 3) -> str:
    """Return "0.12 at first, 0.34 at last" of the finite values, for a chart's text summary."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "no values yet"
    if len(finite) == 1:
        return f"{finite[0]:.{digits}f}"
    return f"{finite[0]:.{digits}f} at first, {finite[-1]:.{digits}f} at last"
