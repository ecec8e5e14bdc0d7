"""Charts with one point for each optimiser step: KL, gradient norm, speed, memory, how busy."""

import math
from collections.abc import Mapping, Sequence

from app.components.charts import Chart, first_to_last
from app.components.columns import Points
from app.components.live_figure import LiveFigure, draw_limit, fit_steps, line, live_figure
from app.components.palette import NEGATIVE, POSITIVE

LIMIT_IN_SIGHT = 4.0
"""A limit is drawn once the values come within this factor of it; before, it would flatten them."""

GB = 1e9

StepCurves = Mapping[str, Points]
"""For each of `app.metrics.STEP_CURVES` its points."""


def kl_chart(steps: StepCurves, max_kl: float, *, constant_old: bool = False) -> Chart:
    """Return the KL estimate to the old policy, and to the base model where that is another.

    Args:
        steps: The run's steps.
        max_kl: The run's limit; 0 means that there is none.
        constant_old: Whether the old log-probabilities are the recipe's constant.
    """
    figure = live_figure("nats per token")
    old, base = steps["kl"], steps["kl_base"]
    differ = len(base) > 0 and (len(base) != len(old) or bool((base["kl_base"] != old["kl"]).any()))
    _draw(figure, old, "kl", "to the old policy", legend=differ)
    if differ:
        _draw(figure, base, "kl_base", "to the base model", colour=NEGATIVE, marker="square")
    values = [*old["kl"].tolist(), *base["kl_base"].tolist()]
    _limit_in_sight(figure, values, max_kl, "KL limit", _last(old))
    now = max([*old["kl"].tolist()[-1:], *base["kl_base"].tolist()[-1:]], default=None)
    return Chart(
        key="kl",
        title="KL to the old policy",
        figure=figure,
        reading=f"Now **{now:.3f} of {max_kl:g}** nats per token." if max_kl and now else "",
        guide=(
            "Measured against the recipe's constant, so only its change says something: a steep "
            "rise or fall means that the steps are large."
            if constant_old
            else "How far the model has moved from where it started. A steep rise means that it is "
            "leaving the data behind."
        )
        + (
            f" The run ends early once it, or KL to the base model, passes {max_kl:g}."
            if max_kl
            else ""
        ),
        alt=f"KL by optimiser step, in nats per token: {first_to_last(old['kl'].tolist(), 4)}.",
    )


def grad_norm_chart(steps: StepCurves, clip_norm: float) -> Chart:
    """Return the gradient norm before clipping; `clip_norm` 0 means that nothing is clipped."""
    points = steps["grad_norm"]
    figure = live_figure("L2 norm")
    _draw(figure, points, "grad_norm", "gradient norm", legend=False)
    norms = points["grad_norm"].tolist()
    _limit_in_sight(figure, norms, clip_norm, "clipped above", _last(points))
    return Chart(
        key="grad_norm",
        title="Gradient norm",
        figure=figure,
        guide="The size of the step that the data asked for"
        + (f", before it is clipped to {clip_norm:g}." if clip_norm else ".")
        + " Exactly 0: nothing to learn from. Spikes: single conversations dominate.",
        alt=f"Gradient norm by optimiser step: {first_to_last(norms, 4)}.",
    )


def speed_chart(steps: StepCurves) -> Chart:
    """Return the tokens that went through the model, forward and backward, per second."""
    points = steps["tokens_per_s"]
    figure = live_figure("tokens per second")
    _draw(figure, points, "tokens_per_s", "speed", digits=1, legend=False)
    return Chart(
        key="speed",
        title="Speed",
        figure=figure,
        guide="Forward and backward together. A drop means that something else uses the machine.",
        alt="Tokens per second by optimiser step: "
        f"{first_to_last(points['tokens_per_s'].tolist(), 1)}.",
    )


def memory_chart(steps: StepCurves) -> Chart:
    """Return the most memory that the run has taken so far: the device's, or the process's."""
    points = steps["memory_bytes"]
    gigabytes = Points({**points.columns, "memory_bytes": points["memory_bytes"] / GB})
    figure = live_figure("GB")
    _draw(figure, gigabytes, "memory_bytes", "memory", digits=2, legend=False)
    return Chart(
        key="memory",
        title="Memory",
        figure=figure,
        guide="The most that it took so far, in GB: the GPU's memory, or the process's on a CPU. "
        "Steps up come with longer conversations.",
        alt="Peak memory by optimiser step, in GB: "
        f"{first_to_last(gigabytes['memory_bytes'].tolist(), 2)}.",
    )


def busy_chart(steps: StepCurves) -> Chart | None:
    """Return how busy GPU and processor were; None where neither was measured."""
    gpu, cpu = steps["gpu_percent"], steps["cpu_percent"]
    if not len(gpu) and not len(cpu):
        return None
    figure = live_figure("share of the time")
    both = len(gpu) > 0 and len(cpu) > 0
    _draw(figure, gpu, "gpu_percent", "GPU", digits=0, unit=" %", legend=both)
    _draw(figure, cpu, "cpu_percent", "CPU", digits=0, unit=" %", legend=both, colour=NEGATIVE)
    figure.layout["yaxis"] |= {"ticksuffix": " %", "autorangeoptions": {"include": [0, 100]}}
    name, points, column = ("GPU", gpu, "gpu_percent") if len(gpu) else ("CPU", cpu, "cpu_percent")
    return Chart(
        key="busy",
        title=f"{name} in use",
        figure=figure,
        guide="How much of the time the GPU computed: well below 100 % means that it waits."
        if len(gpu)
        else "How much of all processor cores the run used. More than half idle: other programs "
        "or too few threads.",
        alt=f"{name} in use by optimiser step, in per cent: "
        f"{first_to_last(points[column].tolist(), 0)}.",
    )


def _draw(
    figure: LiveFigure,
    points: Points,
    column: str,
    name: str,
    *,
    colour: str = POSITIVE,
    marker: str = "circle",
    digits: int = 4,
    unit: str = "",
    legend: bool = True,
) -> None:
    if not len(points):
        return
    fit_steps(figure.layout["xaxis"], _last(points))
    figure.layout["yaxis"]["rangemode"] = "tozero"
    figure.traces.append(
        line(points, column, about=("epoch", "loss", "lr"))
        | {
            "uid": column,
            "name": name,
            "showlegend": legend,
            "line": {"color": colour, "width": 2},
            "marker": {"symbol": marker, "size": 6},
            "hovertemplate": f"step %{{x}}, epoch %{{customdata[0]}}: %{{y:.{digits}f}}{unit} {name}"
            "<br>loss %{customdata[1]:+.4f}, learning rate %{customdata[2]:.2e}<extra></extra>",
        }
    )


def _last(points: Points) -> float:
    return points["step"].tolist()[-1] if len(points) else 0.0


def _limit_in_sight(
    figure: LiveFigure, values: Sequence[float], limit: float, name: str, last_step: float
) -> None:
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    if limit and largest * LIMIT_IN_SIGHT >= limit:
        draw_limit(figure, limit, f"{name} {limit:g}", last_step)
