"""What all charts share: layout, numbers in words, and the sentence that stands for the picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
import plotly.io

from app.components.live_figure import HEIGHT, LiveFigure


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
    figure: go.Figure | LiveFigure
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


def figure_json(figure: go.Figure | LiveFigure) -> str:
    """Return a figure as the browser gets it."""
    if isinstance(figure, LiveFigure):
        return figure.to_json()
    return str(plotly.io.to_json(figure, validate=False))


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
