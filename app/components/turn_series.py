"""Per-turn metric rows -> a curve for each turn position, step by step as they arrive. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from app.components.columns import Columns, Points
from db.records import TurnMetric

TurnValue = Callable[[TurnMetric], float]

MEASURES: dict[str, TurnValue] = {
    "loss": lambda row: row.loss_mean,
    "ratio": lambda row: row.ratio_mean,
    "outside": lambda row: row.clipfrac,
    "binding": lambda row: row.clipfrac_binding,
}
"""What is drawn of each turn: loss, ratio, and the share of tokens outside the clip band and of
those whose gradient the clip removes."""

_ABOUT = ("step", "epoch", "conversations", "reward", "advantage")
_SPREAD = tuple(f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high"))


class PositionSeries:
    """For each turn position the median and the middle half over a step's conversations."""

    def __init__(self) -> None:
        """Begin with no step."""
        self._lines: dict[int, Columns] = {}

    def put(self, rows: Sequence[TurnMetric]) -> None:
        """Take all rows of one step; the last step may be given again, with more of its rows."""
        step = rows[0].step
        turns: dict[int, list[TurnMetric]] = defaultdict(list)
        for row in rows:
            turns[row.turn].append(row)
        for turn, members in turns.items():
            line = self._lines.setdefault(turn, Columns((*_ABOUT, *_SPREAD)))
            if line.last("step") == step:
                line.drop_last()
            line.append(_point(members))

    def points(self, measure: str) -> dict[int, Points]:
        """Return the curve of each turn position, thinned to what a chart can show.

        Args:
            measure: One of `MEASURES`; the columns of that name and with `_low` and `_high` behind
                it are its median and quartiles, beside step, epoch, number of conversations, mean
                reward and mean advantage.
        """
        shown = (measure, f"{measure}_low", f"{measure}_high")
        curves = {
            turn: line.points(*shown, about=_ABOUT) for turn, line in sorted(self._lines.items())
        }
        return {turn: curve for turn, curve in curves.items() if len(curve)}


def of_conversation(rows: Iterable[TurnMetric], value: TurnValue) -> dict[int, list[TurnMetric]]:
    """Return the rows of one conversation by turn, those without a finite value left out."""
    series: dict[int, list[TurnMetric]] = {}
    finite = [row for row in rows if math.isfinite(value(row))]
    for row in sorted(finite, key=lambda row: (row.turn, row.step)):
        series.setdefault(row.turn, []).append(row)
    return series


def _point(members: Sequence[TurnMetric]) -> dict[str, float | None]:
    point: dict[str, float | None] = {
        "step": members[0].step,
        "epoch": members[0].epoch,
        "conversations": len(members),
        "reward": _mean([row.reward for row in members if row.reward is not None]),
        "advantage": _mean([row.advantage for row in members]),
    }
    for name, value in MEASURES.items():
        values = sorted(v for v in map(value, members) if math.isfinite(v))
        point[name] = quantile(values, 0.5)
        point[f"{name}_low"] = quantile(values, 0.25)
        point[f"{name}_high"] = quantile(values, 0.75)
    return point


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return a quantile of sorted values, between two of them in proportion; None without any."""
    if not ordered:
        return None
    below, rest = divmod(share * (len(ordered) - 1), 1)
    at = int(below)
    upper = ordered[min(at + 1, len(ordered) - 1)]
    return ordered[at] + rest * (upper - ordered[at])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
