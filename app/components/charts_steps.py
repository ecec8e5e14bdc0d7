"""Charts with one point for each optimiser step: learning, KL, gradient norm and speed."""

import math
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from app.components.charts import (
    Chart,
    base_figure,
    draw_limit,
    first_to_last,
    line_mode,
    signed,
    step_axis,
)
from app.components.palette import NEGATIVE, NEUTRAL, POSITIVE
from app.components.turn_series import learning_curve
from db.records import StepMetric, TurnMetric

LIMIT_IN_SIGHT = 4.0
"""A limit is drawn once the values come within this factor of it; before, it would flatten them."""

FIRST_EPOCH = "In epoch 1 the run sees every reply for the first time. The first comparison comes with epoch 2."


def learning_chart(rows: Sequence[TurnMetric]) -> Chart:
    """Return the advantage-weighted change of the replies' log-probability."""
    points = learning_curve(rows)
    figure = base_figure("change, nats per token")
    steps = [point.step + 1 for point in points]
    step_axis(figure, [point.step for point in points])
    lines = (
        ("replies to favour", POSITIVE, "circle", [point.praised for point in points]),
        ("replies to avoid", NEGATIVE, "square", [point.criticised for point in points]),
        ("change × advantage", NEUTRAL, "diamond", [point.signal for point in points]),
    )
    for name, colour, marker, values in lines:
        figure.add_trace(
            go.Scatter(
                x=steps,
                y=values,
                name=name,
                mode=line_mode(len(points)),
                cliponaxis=False,
                connectgaps=True,
                line={"color": colour, "width": 2},
                marker={"symbol": marker, "size": 6},
                customdata=[(point.epoch + 1, point.turns) for point in points],
                hovertemplate=f"<b>{name}</b><br>step %{{x}}, epoch %{{customdata[0]}}: "
                "%{y:.4f} nats per token<br>%{customdata[1]} turns<extra></extra>",
            )
        )
    signals = [point.signal for point in points]
    return Chart(
        key="learning",
        title="Is it learning?",
        figure=figure,
        guide="How likely the replies have become, against the first time the run saw them: in the "
        "first epoch it is 0 by definition. The grey line should rise, the blue one above the "
        "orange one. Flat or falling after two epochs: the scores say little, or the steps are "
        "too small.",
        alt="Advantage-weighted change of the replies' log-probability by optimiser step: "
        f"{first_to_last(signals)} nats per token.",
        instead="" if any(point.epoch for point in points) else FIRST_EPOCH,
    )


def kl_chart(steps: Sequence[StepMetric], max_kl: float, *, constant_old: bool = False) -> Chart:
    """Return the KL estimate to the old policy, and to the base model where that is another.

    Args:
        steps: The run's steps.
        max_kl: The run's limit; 0 means that there is none.
        constant_old: Whether the old log-probabilities are the recipe's constant.
    """
    chart = _step_chart(
        steps,
        lambda step: step.kl,
        key="kl",
        title="KL to the old policy",
        y_title="nats per token",
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
    )
    to_base = [step.kl_base for step in steps]
    highest = [max(step.kl, step.kl_base or 0.0) for step in steps]
    if any(step.kl_base is not None and step.kl_base != step.kl for step in steps):
        chart.figure.data[0].update(showlegend=True, name="to the old policy")
        chart.figure.add_trace(
            go.Scatter(
                x=[step.step + 1 for step in steps],
                y=to_base,
                name="to the base model",
                mode=line_mode(len(steps)),
                cliponaxis=False,
                line={"color": NEGATIVE, "width": 2},
                marker={"symbol": "square", "size": 6},
                hovertemplate="step %{x}: %{y:.4f} to the base model<extra></extra>",
            )
        )
    _limit_in_sight(chart.figure, steps, highest, max_kl, "KL limit")
    return chart


def grad_norm_chart(steps: Sequence[StepMetric], clip_norm: float) -> Chart:
    """Return the gradient norm before clipping; `clip_norm` 0 means that nothing is clipped."""
    chart = _step_chart(
        steps,
        lambda step: step.grad_norm,
        key="grad_norm",
        title="Gradient norm",
        y_title="L2 norm",
        guide="The size of the step that the data asked for"
        + (f", before it is clipped to {clip_norm:g}." if clip_norm else ".")
        + " Exactly 0: nothing to learn from. Spikes: single conversations dominate.",
    )
    norms = [step.grad_norm for step in steps]
    _limit_in_sight(chart.figure, steps, norms, clip_norm, "clipped above")
    return chart


def speed_chart(steps: Sequence[StepMetric]) -> Chart:
    """Return the tokens that went through the model, forward and backward, per second."""
    return _step_chart(
        steps,
        lambda step: step.tokens_per_s,
        key="speed",
        title="Speed",
        y_title="tokens per second",
        guide="Forward and backward together. A drop means that something else uses the machine.",
        digits=1,
    )


def _step_chart(
    steps: Sequence[StepMetric],
    value: Callable[[StepMetric], float],
    *,
    key: str,
    title: str,
    y_title: str,
    guide: str,
    digits: int = 4,
) -> Chart:
    figure = base_figure(y_title)
    step_axis(figure, [step.step for step in steps])
    values = [value(step) for step in steps]
    figure.add_trace(
        go.Scatter(
            x=[step.step + 1 for step in steps],
            y=[y if math.isfinite(y) else None for y in values],
            name=title,
            showlegend=False,
            mode=line_mode(len(steps)),
            cliponaxis=False,
            line={"color": POSITIVE, "width": 2},
            marker={"size": 6},
            customdata=[(step.epoch + 1, signed(step.loss, 4), step.lr) for step in steps],
            hovertemplate=f"step %{{x}}, epoch %{{customdata[0]}}: %{{y:.{digits}f}}<br>"
            "loss %{customdata[1]}, learning rate %{customdata[2]:.2e}<extra></extra>",
        )
    )
    figure.update_yaxes(rangemode="tozero")
    return Chart(
        key=key,
        title=title,
        figure=figure,
        guide=guide,
        alt=f"{title} by optimiser step, in {y_title}: {first_to_last(values, digits)}.",
    )


def _limit_in_sight(
    figure: go.Figure,
    steps: Sequence[StepMetric],
    values: Sequence[float],
    limit: float,
    name: str,
) -> None:
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    if limit and largest * LIMIT_IN_SIGHT >= limit:
        draw_limit(figure, limit, f"{name} {limit:g}", [step.step for step in steps])
