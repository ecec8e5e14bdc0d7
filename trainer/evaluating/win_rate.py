"""How often the trained model's answer is preferred, and how sure that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z_95 = 1.959964
"""Two-sided 95 % of the normal distribution."""


@dataclass(frozen=True, slots=True)
class WinRate:
    """A share between 0 and 1 with its 95 % interval.

    Attributes:
        rate: Mean of the verdicts: 1 for a win of the trained model, 0.5 for a tie.
        low: Lower end.
        high: Upper end.
        prompts: How many prompts were judged.
    """

    rate: float
    low: float
    high: float
    prompts: int


def win_rate(verdicts: Sequence[float]) -> WinRate | None:
    """Return the win rate of verdicts in [0, 1]; None without any.

    The interval is Wilson's score interval (Wilson 1927, J. Am. Stat. Assoc. 22:209). It is exact
    about wins and losses alone; with ties it is wider than need be, never narrower.
    """
    count = len(verdicts)
    if not count:
        return None
    rate = sum(verdicts) / count
    square = Z_95**2 / count
    centre = (rate + square / 2) / (1 + square)
    half = Z_95 / (1 + square) * math.sqrt(rate * (1 - rate) / count + square / (4 * count))
    return WinRate(rate, max(0.0, centre - half), min(1.0, centre + half), count)
