"""Per-turn metric rows -> how far the replies have moved, and whether that is what was asked. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.components.columns import Columns, Points
from db.records import TurnMetric

TurnPlace = tuple[int, int]
"""A conversation's position in the run's data, and an assistant turn in it, both from 0."""

_COLUMNS = ("step", "epoch", "signal", "favoured", "avoided", "turns")


@dataclass(frozen=True, slots=True)
class Movement:
    """How far some replies have moved since the run first saw them; sums over reply tokens.

    Attributes:
        asked: Sum of advantage x change of the log-probability, in nats.
        scale: Sum of |advantage|.
        favoured: Sum of the changes of replies with a positive advantage, in nats.
        favoured_tokens: How many tokens those have.
        avoided: The same for replies with a negative advantage.
        avoided_tokens: How many tokens those have.
    """

    asked: float = 0.0
    scale: float = 0.0
    favoured: float = 0.0
    favoured_tokens: int = 0
    avoided: float = 0.0
    avoided_tokens: int = 0

    def __add__(self, other: "Movement") -> "Movement":
        """Return the movement of both."""
        return Movement(
            self.asked + other.asked,
            self.scale + other.scale,
            self.favoured + other.favoured,
            self.favoured_tokens + other.favoured_tokens,
            self.avoided + other.avoided,
            self.avoided_tokens + other.avoided_tokens,
        )

    @property
    def signal(self) -> float:
        """Change x advantage in nats per token: above 0 the model moves as the scores ask."""
        return self.asked / self.scale if self.scale else 0.0

    @property
    def favour_change(self) -> float | None:
        """Mean change of replies to favour in nats per token, None if there are none."""
        return self.favoured / self.favoured_tokens if self.favoured_tokens else None

    @property
    def avoid_change(self) -> float | None:
        """Mean change of replies to avoid in nats per token, None if there are none."""
        return self.avoided / self.avoided_tokens if self.avoided_tokens else None


STILL = Movement()


class LearningSeries:
    """How the replies of each step, each epoch and each turn position have moved."""

    def __init__(self) -> None:
        """Begin with no step."""
        self.first: dict[TurnPlace, TurnMetric] = {}
        self._points = Columns(_COLUMNS)
        self._cells: dict[TurnPlace, Movement] = {}
        self._open: dict[TurnPlace, Movement] = {}

    def put(self, rows: Sequence[TurnMetric]) -> None:
        """Take all rows of one step; the last step may be given again, with more of its rows."""
        if self._points.last("step") == rows[0].step:
            self._points.drop_last()
        else:
            self._cells = self.cells()
        self._open = {}
        total = STILL
        for row in rows:
            moved = movement(row, self.first)
            cell = (row.turn, row.epoch)
            self._open[cell] = self._open.get(cell, STILL) + moved
            total += moved
        self._points.append(
            {
                "step": rows[0].step,
                "epoch": rows[0].epoch,
                "signal": total.signal,
                "favoured": total.favour_change,
                "avoided": total.avoid_change,
                "turns": len(rows),
            }
        )

    def points(self) -> Points:
        """Return the curve over the steps, thinned to what a chart can show."""
        return self._points.points(
            "signal", about=("step", "epoch", "favoured", "avoided", "turns")
        )

    def cells(self) -> dict[TurnPlace, Movement]:
        """Return the movement by (turn position, epoch)."""
        cells = dict(self._cells)
        for cell, moved in self._open.items():
            cells[cell] = cells.get(cell, STILL) + moved
        return cells


def movement(row: TurnMetric, first: dict[TurnPlace, TurnMetric]) -> Movement:
    """Return how far one turn has moved; `first` takes it if it is seen for the first time."""
    if not (math.isfinite(row.logprob_mean) and math.isfinite(row.advantage)):
        return STILL
    start = first.setdefault((row.conversation, row.turn), row)
    change = row.response_tokens * (row.logprob_mean - start.logprob_mean)
    favour, avoid = row.advantage > 0, row.advantage < 0
    return Movement(
        asked=row.advantage * change,
        scale=row.response_tokens * abs(row.advantage),
        favoured=change if favour else 0.0,
        favoured_tokens=row.response_tokens if favour else 0,
        avoided=change if avoid else 0.0,
        avoided_tokens=row.response_tokens if avoid else 0,
    )


def of_epoch(cells: Mapping[TurnPlace, Movement], epoch: int) -> Movement:
    """Return the movement of all turns in one epoch."""
    return sum((moved for (_, at), moved in cells.items() if at == epoch), STILL)


def last_epoch(cells: Mapping[TurnPlace, Movement]) -> int:
    """Return the epoch that the run is in, from 0; 0 before it has measured anything."""
    return max((epoch for _, epoch in cells), default=0)


def cells_of(rows: Iterable[TurnMetric]) -> dict[TurnPlace, Movement]:
    """Return the movement by (turn position, epoch) of some rows, in order of steps."""
    first: dict[TurnPlace, TurnMetric] = {}
    cells: dict[TurnPlace, Movement] = {}
    for row in rows:
        cell = (row.turn, row.epoch)
        cells[cell] = cells.get(cell, STILL) + movement(row, first)
    return cells
