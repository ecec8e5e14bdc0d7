"""Charts of what the run was asked and what has moved: learning curve, heat map, signals."""

from collections.abc import Mapping, Sequence

from app.components.charts import Chart, first_to_last, signed
from app.components.columns import Points
from app.components.format import counted
from app.components.learning import STILL, Movement, TurnPlace, last_epoch, of_epoch
from app.components.live_figure import (
    beside_each_other,
    fit_steps,
    line,
    live_figure,
    uid,
    x_axis,
)
from app.components.palette import NEGATIVE, NEUTRAL, POSITIVE, translucent
from app.components.reading import read_learning
from db.records import TurnMetric

FIRST_EPOCH = "In epoch 1 the run sees every reply for the first time. The first comparison comes with epoch 2."
MOST_LABELLED_CELLS = 40
"""Up to how many cells a heat map also shows its numbers."""


def learning_chart(points: Points, cells: Mapping[TurnPlace, Movement]) -> Chart:
    """Return the advantage-weighted change of the replies' log-probability, with its reading."""
    figure = live_figure("change, nats per token")
    fit_steps(figure.layout["xaxis"], max(points["step"].tolist(), default=0))
    lines = (
        ("replies to favour", POSITIVE, "circle", "favoured"),
        ("replies to avoid", NEGATIVE, "square", "avoided"),
        ("change × advantage", NEUTRAL, "diamond", "signal"),
    )
    for name, colour, marker, column in lines:
        figure.traces.append(
            line(points, column, about=("epoch", "turns"))
            | {
                "uid": column,
                "name": name,
                "connectgaps": True,
                "line": {"color": colour, "width": 2},
                "marker": {"symbol": marker, "size": 6},
                "hovertemplate": f"<b>{name}</b><br>step %{{x}}, epoch %{{customdata[0]}}: "
                "%{y:.4f} nats per token<br>%{customdata[1]} turns<extra></extra>",
            }
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
    movements = [[cells.get((turn, epoch), STILL) for epoch in epochs] for turn in turns]
    every = {
        "to favour": [[moved.favour_change for moved in row] for row in movements],
        "to avoid": [[moved.avoid_change for moved in row] for row in movements],
    }
    panels = {name: rows for name, rows in every.items() if _known(rows)}
    known = [z for rows in panels.values() for z in _known(rows)]
    figure = live_figure("turn")
    cells_axis = {"showgrid": False, "zeroline": False}
    axes = [x_axis(f"epoch · {name}", **_ticks(len(epochs)), **cells_axis) for name in panels]
    if len(axes) == 2:
        beside_each_other(figure, *axes)
    elif axes:
        figure.layout["xaxis"] = axes[0]
    figure.layout["yaxis"] |= {"autorange": "reversed", **_ticks(len(turns)), **cells_axis}
    few = len(epochs) * len(turns) <= MOST_LABELLED_CELLS
    for axis, (name, rows) in zip(("x", "x2"), panels.items(), strict=False):
        figure.traces.append(
            {
                "type": "heatmap",
                "uid": uid(name),
                "xaxis": axis,
                "x": [epoch + 1 for epoch in epochs],
                "y": [turn + 1 for turn in turns],
                "z": rows,
                "coloraxis": "coloraxis",
                "xgap": 2,
                "ygap": 2,
                "texttemplate": "%{z:+.2f}" if few else "",
                "hoverongaps": False,
                "hovertemplate": f"<b>turn %{{y}}</b>, epoch %{{x}}<br>replies {name}: "
                "%{z:+.4f} nats per token<extra></extra>",
            }
        )
    largest = max((abs(z) for z in known), default=1.0) or 1.0
    figure.layout["coloraxis"] = {
        "cmin": -largest,
        "cmax": largest,
        "colorscale": [(0.0, NEGATIVE), (0.5, translucent(NEUTRAL, 0.12)), (1.0, POSITIVE)],
        "colorbar": {"thickness": 10, "outlinewidth": 0},
    }
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
    figure = live_figure("turns", x_title="turn")
    figure.layout |= {"barmode": "stack", "bargap": 0.35}
    figure.layout["xaxis"] |= _ticks(len(positions))
    figure.layout["yaxis"]["tickformat"] = "d"
    for name, (colour, belongs) in kinds.items():
        counts = [
            sum(belongs(row) for (_, turn), row in first.items() if turn == position)
            for position in positions
        ]
        if any(counts) or name != "no signal":
            figure.traces.append(
                {
                    "type": "bar",
                    "uid": uid(name),
                    "x": [position + 1 for position in positions],
                    "y": counts,
                    "name": name,
                    "marker": {"color": colour},
                    "hovertemplate": f"turn %{{x}}: %{{y}} {name}<extra></extra>",
                }
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


def _known(rows: Sequence[Sequence[float | None]]) -> list[float]:
    return [z for row in rows for z in row if z is not None]


def _ticks(number: int) -> dict[str, int]:
    return {"dtick": 1} if number <= 12 else {}


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
