"""One figure of several runs in one chart, a line for each run."""

from collections.abc import Sequence

from app.comparison import ComparedRun
from app.components.charts import Chart, first_to_last
from app.components.charts_turns import hover_text
from app.components.live_figure import fit_steps, line, live_figure
from app.components.palette import turn_colour, turn_marker

CURVES = (
    ("signal", "Is it learning?", "nats per token",
     "Change of the log-probability × advantage. Higher is better: the replies have moved further as the scores ask. Compare runs on the same "
     "data only."),
    ("kl", "KL to the old policy", "nats per token",
     "How far each model has moved from where it began. At the same height above, less is better."),
    ("kl_base", "KL to the base model", "nats per token",
     "How far each model is from the base model."),
    ("grad_norm", "Gradient norm", "L2 norm", "The size of the steps that the data asked for."),
    ("tokens_per_s", "Speed", "tokens per second",
     "Forward and backward together, on the machine as it was."),
)  # fmt: skip
"""What is overlaid: the column, a title, the axis, how to read it."""


def compare_charts(runs: Sequence[ComparedRun]) -> list[Chart]:
    """Return the charts in which at least one of the runs has a line."""
    charts = [_chart(runs, *curve) for curve in CURVES]
    return [chart for chart in charts if chart is not None]


def _chart(
    runs: Sequence[ComparedRun], column: str, title: str, y_title: str, guide: str
) -> Chart | None:
    figure = live_figure(y_title)
    words: list[str] = []
    last = 0.0
    for place, run in enumerate(runs):
        metrics = run.metrics
        points = metrics.learning if column == "signal" else metrics.steps[column]
        if not len(points):
            continue
        values = points[column].tolist()
        last = max(last, points["step"].tolist()[-1])
        name = hover_text(run.label)
        words.append(f"{run.label}: {first_to_last(values)}")
        figure.traces.append(
            line(points, column, about=("epoch",))
            | {
                "uid": f"{column}-{run.run.id}",
                "name": name,
                "showlegend": True,
                "line": {"color": turn_colour(place), "width": 2},
                "marker": {"symbol": turn_marker(place), "size": 6},
                "hovertemplate": f"<b>{name}</b><br>step %{{x}}, epoch %{{customdata[0]}}: "
                "%{y:.4f}<extra></extra>",
            }
        )
    fit_steps(figure.layout["xaxis"], last)
    if not words:
        return None
    return Chart(
        key=f"compare_{column}",
        title=title,
        figure=figure,
        guide=guide,
        alt=f"{title} by optimiser step, in {y_title}: {'; '.join(words)}.",
    )
