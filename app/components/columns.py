"""Numbers in columns that grow at the end, and what of them a chart has room for."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tsdownsample import MinMaxDownsampler

MOST_POINTS = 240
"""How many points of one curve a chart draws; a chart is about twice as many pixels wide."""


@dataclass(frozen=True, slots=True)
class Points:
    """Columns of equal length, as they were when they were asked for."""

    columns: Mapping[str, NDArray[np.float64]]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return one column."""
        return self.columns[name]

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(next(iter(self.columns.values())))

    def rows(self, *names: str) -> Iterator[tuple[float, ...]]:
        """Return some columns row by row, as Python's own numbers."""
        return zip(*(self.columns[name].tolist() for name in names), strict=True)


class Columns:
    """A table of numbers to which rows are added at the end; a missing number is NaN."""

    def __init__(self, names: Sequence[str]) -> None:
        """Begin with no row."""
        self._columns = {name: array("d") for name in names}

    def append(self, values: Mapping[str, float | None]) -> None:
        """Add a row.

        Args:
            values: One for each column; None stands for a missing number.
        """
        for name, column in self._columns.items():
            value = values[name]
            column.append(np.nan if value is None else value)

    def drop_last(self) -> None:
        """Take the last row away again."""
        for column in self._columns.values():
            column.pop()

    def last(self, name: str) -> float:
        """Return a column's last number; NaN if there is no row."""
        column = self._columns[name]
        return column[-1] if column else np.nan

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(next(iter(self._columns.values())))

    def points(self, *shown: str, about: Sequence[str] = (), most: int = MOST_POINTS) -> Points:
        """Return what a chart of some columns draws.

        Rows are left out where one of these columns is no finite number, and where there are too
        many: the extremes of each stretch of each of these columns stay, and so do both ends.

        Args:
            shown: The columns that are drawn as curves.
            about: The columns that say what a point is about.
            most: How many rows to keep for each curve.
        """
        # Views of the growing columns, which only picking rows turns into copies: a column cannot
        # grow while somebody holds a view of it.
        full = {name: np.frombuffer(self._columns[name]) for name in (*about, *shown)}
        finite = np.flatnonzero(np.logical_and.reduce([np.isfinite(full[n]) for n in shown]))
        kept = finite[thinned([full[name][finite] for name in shown], most)]
        return Points({name: column[kept] for name, column in full.items()})


def thinned(curves: Sequence[NDArray[np.float64]], most: int) -> NDArray[np.intp]:
    """Return which places of some curves of equal length to draw, in order.

    Args:
        curves: Finite numbers.
        most: How many places of each curve to keep; all of them where there are no more.
    """
    length = len(curves[0])
    if length <= most:
        return np.arange(length)
    chosen = [np.array([0, length - 1], dtype=np.uint64)]
    chosen += [MinMaxDownsampler().downsample(curve, n_out=most - most % 2) for curve in curves]
    return np.unique(np.concatenate(chosen)).astype(np.intp)
