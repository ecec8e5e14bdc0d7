"""Charts of what the run was asked and what has moved: learning curve, heat map, signals."""

from collections.abc import Mapping

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.components.charts import (
    Chart,
    base_figure,
    first_to_last,
    line_mode,
    signed,
    step_axis,
)
from app.components.columns import Points
from app.components.format import counted
from app.components.learning import Movement, TurnPlace, last_epoch, of_epoch
from app.components.palette import NEGATIVE, NEUTRAL, POSITIVE, translucent
from app.components.reading import read_learning
from db.records import TurnMetric

FIRST_EPOCH = "In epoch 1 the run sees every reply for the first time. The first comparison comes with epoch 2."
MOST_LABELLED_CELLS = 40
"""Up to how many cells a heat map also shows its numbers."""


def learning_chart(points: Points, cells: Mapping[TurnPlace, Movement]) -> Chart:
    """Return the advantage-weighted change of the replies' log-probability, with its reading."""
    figure = base_figure("change, nats per token")
    steps = points["step"] + 1
    step_axis(figure, max(points["step"].tolist(), default=0))
    lines = (
        ("replies to favour", POSITIVE, "circle", "favoured"),
        ("replies to avoid", NEGATIVE, "square", "avoided"),
        ("change × advantage", NEUTRAL, "diamond", "signal"),
    )
    for name, colour, marker, column in lines:
        figure.add_trace(
            go.Scatter(
                uid=column,
                x=steps,
                y=points[column],
                name=name,
                mode=line_mode(len(points)),
                cliponaxis=False,
                connectgaps=True,
                line={"color": colour, "width": 2},
                marker={"symbol": marker, "size": 6},
                customdata=[(epoch + 1, turns) for epoch, turns in points.rows("epoch", "turns")],
                hovertemplate=f"<b>{name}</b><br>step %{{x}}, epoch %{{customdata[0]}}: "
                "%{y:.4f} nats per token<br>%{customdata[1]} turns<extra></extra>",
            )
        )
    return Chart(
        key="learning",
        title="Is it learning?",
        figure=figure,
        reading=read_learning(of_epoch(cells, last_epoch(cells))) if last_epoch(cells) else "",
        guide="How likely the replies have become, against the first time the run saw them: in the "
        "first epoch it is 0 by definition. The grey line should rise, the blue one above the "
        "orange one. Flat or falling after two epochs: the scores say little, or the steps are "
        "too small.",
        alt="Advantage-weighted change of the replies' log-probability by optimiser step: "
        f"{first_to_last(points['signal'].tolist())} nats per token.",
        instead="" if last_epoch(cells) else FIRST_EPOCH,
    )


def heat_chart(cells: Mapping[TurnPlace, Movement], whose: str = "all conversations") -> Chart:
    """Return the change by turn position and epoch: replies to favour beside replies to avoid."""
    epochs = sorted({epoch for _, epoch in cells if epoch})
    turns = sorted({turn for turn, _ in cells})
    panels = {
        "to favour": [[_cell(cells, t, e).favour_change for e in epochs] for t in turns],
        "to avoid": [[_cell(cells, t, e).avoid_change for e in epochs] for t in turns],
    }
    known = [z for rows in panels.values() for row in rows for z in row if z is not None]
    layout = base_figure("turn", x_title="epoch").layout
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.04)
    figure.update_layout(layout)
    for column, (name, rows) in enumerate(panels.items(), start=1):
        few = len(epochs) * len(turns) <= MOST_LABELLED_CELLS
        figure.add_trace(
            go.Heatmap(
                uid=name,
                x=[epoch + 1 for epoch in epochs],
                y=[turn + 1 for turn in turns],
                z=rows,
                coloraxis="coloraxis",
                xgap=2,
                ygap=2,
                texttemplate="%{z:+.2f}" if few else None,
                hoverongaps=False,
                hovertemplate=f"<b>turn %{{y}}</b>, epoch %{{x}}<br>replies {name}: "
                "%{z:+.4f} nats per token<extra></extra>",
            ),
            row=1,
            col=column,
        )
        title = {"text": f"epoch · replies {name}", "standoff": 10}
        figure.update_xaxes(title=title, tickformat="d", dtick=_tick(len(epochs)), showgrid=False,
                            zeroline=False, automargin=True, col=column)  # fmt: skip
    largest = max((abs(z) for z in known), default=1.0) or 1.0
    figure.update_yaxes(dtick=_tick(len(turns)), autorange="reversed", showgrid=False,
                        zeroline=False, automargin=True)  # fmt: skip
    figure.update_layout(
        coloraxis={
            "cmin": -largest,
            "cmax": largest,
            "colorscale": [
                (0.0, NEGATIVE),
                (0.5, translucent(NEUTRAL, 0.12)),
                (1.0, POSITIVE),
            ],
            "colorbar": {"thickness": 10, "outlinewidth": 0},
        }
    )
    return Chart(
        key="heat",
        title="Which turns have moved?",
        figure=figure,
        guide="Change of the log-probability in nats per token since the first epoch, by turn "
        f"position, over {whose}. Blue: likelier, orange: less likely. Left should turn blue; "
        "right should turn orange, or at least less blue. A row that stays pale learns nothing.",
        alt=_describe_heat(panels, turns),
        instead="" if epochs else FIRST_EPOCH,
    )


def signals_chart(first: Mapping[TurnPlace, TurnMetric]) -> Chart:
    """Return how many turns of each position are to favour, to avoid, or without a signal."""
    positions = sorted({turn for _, turn in first})
    kinds = {
        "to favour": (POSITIVE, lambda row: row.advantage > 0),
        "to avoid": (NEGATIVE, lambda row: row.advantage < 0),
        "no signal": (NEUTRAL, lambda row: row.advantage == 0),
    }
    figure = base_figure("turns", x_title="turn")
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_xaxes(dtick=_tick(len(positions)))
    figure.update_yaxes(tickformat="d")
    for name, (colour, belongs) in kinds.items():
        counts = [
            sum(belongs(row) for (_, turn), row in first.items() if turn == position)
            for position in positions
        ]
        if any(counts) or name != "no signal":
            figure.add_trace(
                go.Bar(
                    uid=name,
                    x=[position + 1 for position in positions],
                    y=counts,
                    name=name,
                    marker={"color": colour},
                    hovertemplate=f"turn %{{x}}: %{{y}} {name}<extra></extra>",
                )
            )
    silent = sum(row.advantage == 0 for row in first.values())
    share = f"{silent:,} of {counted(len(first), 'turn')}"
    return Chart(
        key="signals",
        title="Turns with and without a signal",
        figure=figure,
        reading=(
            f":orange[:material/signal_disconnected:] **{share} have no signal**: their advantage "
            "is 0, so nothing is learned from them. The tab Data names them."
            if silent
            else f"Every one of {counted(len(first), 'turn')} has a signal."
            if first
            else ""
        ),
        guide="What the scores ask of the replies at each position of a conversation. Many turns "
        "without a signal: they were scored alike, so there is nothing to tell apart.",
        alt=f"Turns without a signal: {share}." if first else "Turns by signal: no values yet.",
    )


def _cell(cells: Mapping[TurnPlace, Movement], turn: int, epoch: int) -> Movement:
    return cells.get((turn, epoch), Movement())


def _tick(number: int) -> int | None:
    return 1 if number <= 12 else None


def _describe_heat(panels: Mapping[str, list[list[float | None]]], turns: list[int]) -> str:
    lasts = [
        f"turn {turn + 1} {name} {signed(row[-1])}"
        for name, rows in panels.items()
        for turn, row in zip(turns, rows, strict=True)
        if row and row[-1] is not None
    ]
    if not lasts:
        return "Change by turn and epoch: no values yet."
    return f"Change of the log-probability in the last epoch, nats per token: {'; '.join(lasts)}."
