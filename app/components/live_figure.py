"""A figure as plain data, for charts that are drawn anew every few seconds.

Plotly's own classes check every number and copy it several times: a third of a second for a page of
charts, each time that somebody's page looks for something new. Here numbers go to the browser as
they lie in memory; a test lets Plotly's classes check what comes out.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.components.columns import Points
from app.components.palette import NEUTRAL

HEIGHT = 280
MOST_MARKERS = 60


@dataclass(eq=False)
class LiveFigure:
    """Traces and layout in Plotly's JSON form.

    Attributes:
        traces: Each with a `uid`, by which a redraw knows it again.
        layout: Without ranges: a fixed range would end the reader's zoom whenever it grows.
    """

    layout: dict[str, Any]
    traces: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the figure as the browser gets it; from then on it must not change."""
        return self._json

    @cached_property
    def _json(self) -> str:
        return json.dumps({"data": self.traces, "layout": self.layout}, allow_nan=False)


def live_figure(y_title: str, *, x_title: str = "step") -> LiveFigure:
    """Return an empty figure in the common layout; colours and fonts are the page's."""
    return LiveFigure(
        layout={
            "height": HEIGHT,
            "margin": {"l": 8, "r": 12, "t": 16, "b": 8},
            "hovermode": "closest",
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "xaxis": x_axis(x_title),
            "yaxis": {
                "title": {"text": y_title, "standoff": 14},
                "automargin": True,
                "zeroline": True,
                "exponentformat": "none",
            },
            "annotations": [],
        }
    )


def x_axis(title: str, **settings: Any) -> dict[str, Any]:
    """Return an axis along the bottom, of whole numbers."""
    words = {"text": title, "standoff": 10}
    return {"title": words, "tickformat": "d", "automargin": True, **settings}


def beside_each_other(figure: LiveFigure, left: dict[str, Any], right: dict[str, Any]) -> None:
    """Divide a figure into two panels that share their vertical axis.

    Traces with `"xaxis": "x2"` belong to the right one.
    """
    figure.layout["xaxis"] = left | {"domain": [0, 0.48]}
    figure.layout["xaxis2"] = right | {"domain": [0.52, 1], "anchor": "y"}


def fit_steps(axis: dict[str, Any], last_step: float, *, most_ticks: int = 12) -> None:
    """Make room for all optimiser steps, counted from 1; few steps get one tick each."""
    axis["autorangeoptions"] = {"include": [0.5, last_step + 1.5]}
    if last_step < most_ticks:
        axis["dtick"] = 1


def line(points: Points, column: str, *, about: Sequence[str] = ()) -> dict[str, Any]:
    """Return the data of a curve over the steps, counted from 1.

    Args:
        points: The curve.
        column: Which column is drawn.
        about: Columns that the hover label tells, as `customdata[0]` and so on; epochs are
            counted from 1 there.
    """
    drawn: dict[str, Any] = {
        "type": "scatter",
        "x": packed(points["step"] + 1),
        "y": packed(points[column]),
        "mode": line_mode(len(points)),
        "cliponaxis": False,
    }
    if about:
        drawn["customdata"] = packed(
            np.column_stack([points[name] + (name == "epoch") for name in about])
        )
    return drawn


def line_mode(points: int) -> str:
    """Return the trace mode: markers vanish where there are too many to tell apart."""
    return "lines+markers" if points <= MOST_MARKERS else "lines"


def uid(name: str) -> str:
    """Return a trace's `uid` from its name: Plotly makes a CSS class of it when it saves a picture."""
    return re.sub(r"[^\w-]+", "-", name)


def draw_limit(figure: LiveFigure, value: float, name: str, last_step: float) -> None:
    """Draw a horizontal limit, as a trace, so that the y axis makes room for it."""
    figure.traces.append(
        {
            "type": "scatter",
            "uid": uid(name),
            "x": [0.5, last_step + 1.5],
            "y": [value, value],
            "mode": "lines",
            "line": {"dash": "dash", "width": 1.5, "color": NEUTRAL},
            "name": name,
            "showlegend": False,
            "hovertemplate": f"{name}<extra></extra>",
        }
    )
    figure.layout["annotations"].append(
        {"text": name, "x": 1, "xref": "paper", "xanchor": "right", "y": value,
         "yanchor": "bottom", "showarrow": False, "font": {"size": 11}}
    )  # fmt: skip


def packed(values: NDArray[np.float64]) -> Mapping[str, str]:
    """Return numbers in Plotly's form for their bytes, with seven digits; NaN is a gap."""
    single = np.ascontiguousarray(values, dtype="<f4")
    data = {"dtype": "f4", "bdata": base64.b64encode(single.tobytes()).decode()}
    if single.ndim > 1:
        data["shape"] = ", ".join(str(size) for size in single.shape)
    return data
