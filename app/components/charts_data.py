"""Charts of a run's data: the rewards and advantages of its turns, by turn position."""

import statistics
from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go

from app.components.charts import Chart, base_figure, signed
from app.components.palette import translucent, turn_colour
from trainer.preview import TurnPreview

BOX_OPACITY = 0.2


def data_chart(turns: Sequence[TurnPreview], what: Literal["reward", "advantage"]) -> Chart:
    """Return one box a turn position, with every turn as a point."""
    figure = base_figure(what, x_title="")
    figure.update_xaxes(tickformat=None, rangemode=None)
    medians: list[str] = []
    for position in sorted({turn.turn for turn in turns}):
        members = [t for t in turns if t.turn == position and _value(t, what) is not None]
        if not members:
            continue
        values = [_value(turn, what) for turn in members]
        name = f"turn {position + 1}"
        medians.append(
            f"{name} median {signed(statistics.median(v for v in values if v is not None), 2)}"
        )
        figure.add_trace(
            go.Box(
                y=values,
                name=name,
                boxpoints="all",
                jitter=0.5,
                pointpos=0,
                line={"color": turn_colour(position), "width": 1.5},
                fillcolor=translucent(turn_colour(position), BOX_OPACITY),
                marker={"size": 5, "color": turn_colour(position)},
                customdata=[
                    (
                        turn.title.replace("<", "&lt;"),
                        signed(turn.reward, 2),
                        signed(turn.advantage),
                    )
                    for turn in members
                ],
                hovertemplate=f"<b>%{{customdata[0]}}, {name}</b><br>"
                "reward %{customdata[1]}, advantage %{customdata[2]}<extra></extra>",
                hoveron="points",
                showlegend=False,
            )
        )
    return Chart(
        key=f"data_{what}",
        title=f"{what.capitalize()} of the data",
        figure=figure,
        guide=_GUIDES[what],
        alt=f"{what.capitalize()} by turn position: {'; '.join(medians) or 'no values yet'}.",
    )


_GUIDES = {
    "reward": "The scores as people gave them. Boxes without height: everybody scored alike, and "
    "there is little to learn from.",
    "advantage": "What training makes of them: above 0 a reply becomes more likely, below 0 less. "
    "Everything near 0 means that the run has nothing to go by.",
}


def _value(turn: TurnPreview, what: str) -> float | None:
    return turn.reward if what == "reward" else turn.advantage
