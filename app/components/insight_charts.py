"""The insight page's pictures: how people score, where, and whether length buys a score."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.components.charts import Chart, base_figure
from app.components.format import counted
from app.components.names import chart_names
from app.components.palette import NEUTRAL, POSITIVE, TURN_COLOURS, translucent
from db.records.insight import (
    STEPS,
    LengthBias,
    PositionSummary,
    RaterSummary,
    ScoreCount,
    TagSummary,
)

MOST_RATERS = len(TURN_COLOURS) - 1
"""More raters than colours: the rest is added up as "others"."""

MOST_BARS = 15
"""Tags or raters with a bar of their own; the largest are shown."""

FEW_REPLIES = 30
"""From fewer replies a correlation says nothing."""

NO_TAG = "(no tag)"


def distribution_chart(counts: Sequence[ScoreCount]) -> Chart:
    """Return how often each score was given, each rater's share in a colour."""
    figure = base_figure("scores", x_title="score")
    totals: dict[str, int] = {}
    for row in counts:
        totals[row.rater] = totals.get(row.rater, 0) + row.count
    busiest = sorted(totals, key=lambda rater: (-totals[rater], rater))[:MOST_RATERS]
    names = chart_names(busiest)
    for index, rater in enumerate(busiest):
        own = [row for row in counts if row.rater == rater]
        _add_bars(figure, own, name=names[index], colour=TURN_COLOURS[index])
    others = [row for row in counts if row.rater not in busiest]
    if others:
        _add_bars(figure, others, name="others", colour=NEUTRAL)
    figure.update_layout(barmode="stack", showlegend=len(totals) > 1)
    low = -1.0 if any(row.step < 0 for row in counts) else 0.0
    figure.update_xaxes(tickformat=".1f", dtick=0.1 if low == 0 else 0.25, range=[low - 0.04, 1.04])
    figure.update_yaxes(rangemode="tozero")
    total = sum(totals.values())
    by_step: dict[int, int] = {}
    for row in counts:
        by_step[row.step] = by_step.get(row.step, 0) + row.count
    most = max(by_step, key=lambda step: by_step[step]) if by_step else 0
    share = by_step.get(most, 0) / total if total else 0.0
    return Chart(
        key="distribution",
        title="How often each score was given",
        figure=figure,
        guide="Spread over the scale: the scores tell turns apart, which is what training learns "
        "from. One tall bar: nearly everything looks alike, and there is little to learn.",
        alt=f"{counted(total, 'score')}; the most frequent is {most / STEPS:.2f}, {share:.0%} of "
        "them.",
    )


def position_chart(positions: Sequence[PositionSummary]) -> Chart:
    """Return the mean score at each turn of a conversation."""
    scored = [row for row in positions if row.mean is not None]
    figure = base_figure("mean score", x_title="turn")
    figure.add_trace(
        go.Scatter(
            x=[row.turn + 1 for row in scored],
            y=[row.mean for row in scored],
            mode="lines+markers",
            line={"color": POSITIVE, "width": 2},
            marker={"size": 7},
            customdata=[row.scored_turns for row in scored],
            hovertemplate="turn %{x}: %{y:.2f}, from %{customdata:,} turns<extra></extra>",
        )
    )
    _score_axis(figure, [row.mean for row in scored if row.mean is not None])
    figure.update_xaxes(dtick=1 if len(scored) <= 20 else None)
    said = ", ".join(f"turn {row.turn + 1} {row.mean:.2f}" for row in scored[:10])
    return Chart(
        key="position",
        title="Mean score by turn",
        figure=figure,
        guide="A line that falls: replies get worse as conversations go on, and late turns are "
        "where training can win. Far to the right few conversations are left; hover for how many.",
        alt=f"Mean score by turn: {said or 'no scores yet'}.",
    )


def unscored_chart(positions: Sequence[PositionSummary]) -> Chart:
    """Return how many turns at each place have a score, and how many have none."""
    figure = base_figure("turns", x_title="turn")
    x = [row.turn + 1 for row in positions]
    without = [row.turns - row.scored_turns for row in positions]
    for name, y, colour in (
        ("scored", [row.scored_turns for row in positions], POSITIVE),
        ("not scored", without, NEUTRAL),
    ):
        figure.add_trace(
            go.Bar(
                x=x, y=y, name=name, marker={"color": colour},
                hovertemplate=f"turn %{{x}}: %{{y:,}} {name}<extra></extra>",
            )
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    figure.update_xaxes(dtick=1 if len(x) <= 20 else None)
    figure.update_yaxes(rangemode="tozero")
    turns = sum(row.turns for row in positions)
    return Chart(
        key="unscored",
        title="Turns with and without a score",
        figure=figure,
        guide="Grey turns teach nothing and are context only. Grey mainly at the right: people "
        "stop before the end, and the last turns are never judged.",
        alt=f"{sum(without):,} of {counted(turns, 'turn')} have no score.",
    )


def length_chart(bias: LengthBias) -> Chart:
    """Return the mean score of short and long replies, in tenths of the replies."""
    figure = base_figure("mean score", x_title="length of the reply (characters)")
    figure.add_trace(
        go.Scatter(
            x=[band.mean_chars for band in bias.bands],
            y=[band.mean for band in bias.bands],
            mode="lines+markers",
            line={"color": POSITIVE, "width": 2},
            marker={"size": 7},
            customdata=[(band.shortest, band.longest, band.replies) for band in bias.bands],
            hovertemplate="%{customdata[0]:,} to %{customdata[1]:,} characters: mean %{y:.2f}, "
            "%{customdata[2]:,} replies<extra></extra>",
        )
    )
    _score_axis(figure, [band.mean for band in bias.bands])
    figure.update_xaxes(tickformat=",d", rangemode="tozero")
    return Chart(
        key="length",
        title="Do longer replies get better scores?",
        figure=figure,
        guide=reading(bias),
        alt=f"Mean score by length, from the shortest tenth of {counted(bias.replies, 'reply', 'replies')} "
        f"to the longest: {', '.join(f'{band.mean:.2f}' for band in bias.bands)}. {reading(bias)}",
    )


def reading(bias: LengthBias) -> str:
    """Say in plain words what the correlation of length and score means for training."""
    if bias.correlation is None or bias.replies < FEW_REPLIES:
        return (
            f"Too few different replies to tell ({bias.replies:,}; it takes {FEW_REPLIES}): score "
            "some more."
        )
    number = f"rank correlation {bias.correlation:+.2f}".replace("-", "−")
    size = abs(bias.correlation)
    if size < 0.1:
        return f"No: short and long replies score alike ({number})."
    longer = bias.correlation > 0
    which, opposite = ("longer", "Short") if longer else ("shorter", "Long")
    if size < 0.3:
        return f"A little: {which} replies score slightly better ({number}). No reason to worry."
    strength = "clearly" if size < 0.5 else "much"
    write_less = "more" if longer else "less"
    return (
        f"Yes, {which} replies score {strength} better ({number}). A run will teach the model to "
        f"write {write_less}, whether that is what you mean or not. {opposite} replies that are good "
        "would balance it: look for some, and score them."
    )


def tag_chart(tags: Sequence[TagSummary]) -> Chart:
    """Return the mean score of each tag's turns."""
    scored = [row for row in tags if row.mean is not None][:MOST_BARS]
    shown = sorted(scored, key=lambda row: row.mean or 0.0)
    names = chart_names([row.tag or NO_TAG for row in shown])
    figure = _bars(
        names,
        [row.mean or 0.0 for row in shown],
        [f"{counted(row.scored_turns, 'scored turn')} of {row.turns:,}" for row in shown],
    )
    said = ", ".join(f"{row.tag or NO_TAG} {row.mean:.2f}" for row in reversed(shown))
    return Chart(
        key="tags",
        title="Mean score by tag",
        figure=figure,
        guide="The lowest bar is where the model has most to learn. Hover for how many turns a mean "
        "comes from: a handful says little.",
        alt=f"Mean score by tag: {said or 'no scores yet'}.",
    )


def rater_chart(raters: Sequence[RaterSummary]) -> Chart:
    """Return each person's mean score with the standard deviation of their scores."""
    shown = sorted(raters[:MOST_BARS], key=lambda row: row.mean)
    figure = _bars(
        chart_names([row.rater for row in shown]),
        [row.mean for row in shown],
        [counted(row.scores, "score") for row in shown],
        spread=[row.deviation or 0.0 for row in shown],
    )
    said = ", ".join(f"{row.rater} {row.mean:.2f}" for row in reversed(shown))
    return Chart(
        key="raters",
        title="Mean score by rater",
        figure=figure,
        guide="The line is one standard deviation to both sides: a short one belongs to somebody "
        "who uses little of the scale. Raters may have seen different turns; the Agreement page "
        "compares them on the same ones.",
        alt=f"Mean score by rater: {said or 'no scores yet'}.",
    )


def _bars(
    names: Sequence[str],
    values: Sequence[float],
    notes: Sequence[str],
    *,
    spread: Sequence[float] | None = None,
) -> go.Figure:
    figure = base_figure("", x_title="mean score")
    figure.add_trace(
        go.Bar(
            x=list(values), y=list(names), orientation="h",
            marker={"color": translucent(POSITIVE, 0.75) if spread else POSITIVE},
            error_x={"array": list(spread), "color": NEUTRAL, "thickness": 1.5} if spread else None,
            customdata=list(notes),
            hovertemplate="<b>%{y}</b>: %{x:.2f}, %{customdata}<extra></extra>",
        )
    )  # fmt: skip
    lowest = min([0.0, *values])
    figure.update_xaxes(tickformat=".1f", range=[lowest * 1.1, 1.0])
    figure.update_yaxes(type="category", zeroline=False)
    return figure


def _add_bars(figure: go.Figure, counts: Sequence[ScoreCount], *, name: str, colour: str) -> None:
    by_step: dict[int, int] = {}
    for row in counts:
        by_step[row.step] = by_step.get(row.step, 0) + row.count
    figure.add_trace(
        go.Bar(
            x=[step / STEPS for step in by_step],
            y=list(by_step.values()),
            width=0.8 / STEPS,
            name=name,
            marker={"color": colour},
            hovertemplate=f"<b>{name}</b> %{{x:.2f}}: %{{y:,}}<extra></extra>",
        )
    )


def _score_axis(figure: go.Figure, values: Sequence[float]) -> None:
    figure.update_yaxes(
        range=[-1.05 if min(values, default=0.0) < 0 else 0.0, 1.05], tickformat=".1f"
    )
