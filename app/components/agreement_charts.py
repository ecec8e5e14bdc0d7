"""The agreement page's pictures: how far apart scores of one turn are, and who scores higher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.components.charts import Chart, base_figure, signed
from app.components.format import counted
from app.components.names import chart_names
from app.components.palette import NEGATIVE, NEUTRAL, POSITIVE
from db.records.agreement import RaterPair, RatersOfTurns, SpreadCount

MOST_RATERS = 12
"""More bars than this cannot be told apart; those with the most shared turns are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaning:
    """How one person scores beside the others, on turns that both scored.

    Attributes:
        higher: Mean of their score minus another's.
        comparisons: How many such differences it is the mean of.
    """

    rater: str
    higher: float
    comparisons: int


def leanings(pairs: Sequence[RaterPair]) -> list[Leaning]:
    """Return everybody's leaning, the highest first."""
    sums: dict[str, tuple[float, int]] = {}
    for pair in pairs:
        for rater, sign in ((pair.first, 1), (pair.second, -1)):
            total, turns = sums.get(rater, (0.0, 0))
            sums[rater] = (total + sign * pair.higher * pair.turns, turns + pair.turns)
    found = [
        Leaning(rater=rater, higher=total / turns, comparisons=turns)
        for rater, (total, turns) in sums.items()
    ]
    return sorted(found, key=lambda one: (-one.higher, one.rater))


def alpha_reading(alpha: float | None) -> str:
    """Say what a value of alpha means; the limits are Krippendorff's own (0.8 and 0.667)."""
    if alpha is None:
        return "not defined: everybody gave the same score everywhere"
    if alpha >= 0.8:
        return "people agree well: these scores can be relied on"
    if alpha >= 0.667:
        return "people agree fairly: take conclusions as tentative"
    if alpha > 0:
        return "people agree too little: sharpen the guidelines, or decide turns below"
    return "people agree no better than chance"


def spread_chart(spreads: Sequence[SpreadCount]) -> Chart:
    """Return how many shared turns have each distance between their highest and lowest score."""
    figure = base_figure("turns", x_title="highest minus lowest score")
    figure.add_trace(
        go.Bar(
            x=[row.spread for row in spreads],
            y=[row.turns for row in spreads],
            width=0.04,
            marker={"color": POSITIVE},
            hovertemplate="%{x:.2f} apart: %{y:,} turns<extra></extra>",
        )
    )
    last = max((row.spread for row in spreads), default=1.0)
    figure.update_xaxes(tickformat=".1f", dtick=0.1 if last <= 1 else 0.2)
    figure.update_yaxes(rangemode="tozero")
    shared = sum(row.turns for row in spreads)
    near = sum(row.turns for row in spreads if row.spread <= 0.1 + 1e-9)
    share = near / shared if shared else 0.0
    return Chart(
        key="spread",
        title="How far apart the scores of one turn are",
        figure=figure,
        guide="A heap at the left: people see the same. A second heap far to the right: they read "
        "the guidelines in two ways, or a turn is really both.",
        alt=f"Of {counted(shared, 'turn')} scored by several people, {share:.0%} lie at most 0.1 "
        f"apart; the widest is {last:.2f}.",
    )


def leaning_chart(pairs: Sequence[RaterPair]) -> Chart:
    """Return how much higher or lower each person scores than the others on the same turns."""
    everybody = leanings(pairs)
    busiest = sorted(everybody, key=lambda one: -one.comparisons)[:MOST_RATERS]
    shown = [one for one in reversed(everybody) if one in busiest]
    names = chart_names([one.rater for one in shown])
    figure = base_figure("", x_title="mean difference")
    figure.add_trace(
        go.Bar(
            x=[one.higher for one in shown],
            y=names,
            orientation="h",
            marker={"color": [POSITIVE if one.higher >= 0 else NEGATIVE for one in shown]},
            customdata=[
                (signed(one.higher, 2), counted(one.comparisons, "comparison")) for one in shown
            ],
            hovertemplate="<b>%{y}</b>: %{customdata[0]}, from %{customdata[1]}<extra></extra>",
        )
    )
    widest = max((abs(one.higher) for one in shown), default=0.0)
    figure.update_xaxes(
        tickformat="+.2f", range=[-max(0.1, widest * 1.15), max(0.1, widest * 1.15)]
    )
    figure.update_yaxes(zeroline=False, type="category")
    figure.add_vline(x=0, line={"width": 1, "color": NEUTRAL})
    said = "; ".join(f"{one.rater} {signed(one.higher, 2)}" for one in everybody[:MOST_RATERS])
    left_out = len(everybody) - len(shown)
    more = f" The {len(shown)} with the most shared turns are shown." if left_out else ""
    return Chart(
        key="leaning",
        title="Who scores higher or lower than the others",
        figure=figure,
        guide="On the same turns, so that nobody is blamed for hard ones. A long bar: this person "
        f"uses another scale; talk about examples, or train on the median.{more}",
        alt=f"Mean difference from the others on the same turns: {said}.",
    )


def coverage_chart(coverage: Sequence[RatersOfTurns], target: int) -> Chart:
    """Return how many turns have been scored by none, one, two ... people."""
    turns: Mapping[int, int] = {row.raters: row.turns for row in coverage}
    numbers = list(range(max([target, *turns]) + 1))
    figure = base_figure("turns", x_title="people who scored it")
    figure.add_trace(
        go.Bar(
            x=numbers,
            y=[turns.get(number, 0) for number in numbers],
            width=0.7,
            marker={"color": [POSITIVE if number >= target else NEUTRAL for number in numbers]},
            hovertemplate="%{y:,} turns scored by %{x}<extra></extra>",
        )
    )
    figure.update_xaxes(dtick=1)
    figure.update_yaxes(rangemode="tozero")
    reached = sum(number for raters, number in turns.items() if raters >= target)
    return Chart(
        key="coverage",
        title="How many people scored a turn",
        figure=figure,
        guide=f"Blue: {counted(target, 'rater')} or more, as the settings ask for. Agreement is "
        "only known where two or more people scored the same turn.",
        alt=f"{reached:,} of {counted(sum(turns.values()), 'turn')} have {target} or more raters.",
    )
