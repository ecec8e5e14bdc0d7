"""A mean over seeds with its confidence interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""97.5 % quantiles of Student's t by degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return mean and interval, as they are printed."""
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def t_interval(values: Sequence[float]) -> Interval:
    """Return the mean of a few independent values with its 95 % t-interval.

    Raises:
        ValueError: if there are fewer than two values, or more than the table has.
    """
    freedom = len(values) - 1
    if freedom not in T_975:
        raise ValueError(f"no t-interval for {len(values)} values")
    mean = fmean(values)
    half = T_975[freedom] * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)
