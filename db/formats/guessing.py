"""Which scale a file's scores are on, guessed from their values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from db.formats.scales import Scale, ScaleKind
from db.formats.values import UntrustedError, is_none, is_percentage, is_yes_or_no, number_of
from db.records import SCORE_MAX, SCORE_MIN

OWN_NAMES = frozenset({"reward", "score", "value"})
"""What is called so is taken for the product's own scale, unless most of it lies outside."""

ENOUGH = 3
"""So many values, at least, say something of their scale."""

_FROM_ZERO = ((0.0, 4.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))
_FROM_ONE = ((1.0, 5.0), (1.0, 7.0), (1.0, 10.0), (1.0, 100.0))
_NEARLY_ALL = 0.98


@dataclass(slots=True)
class _Sorted:
    """The values of one kind of score, by what they are."""

    numbers: list[float] = field(default_factory=list[float])
    percentages: int = 0
    truths: int = 0
    others: int = 0


def guess_scale(name: str, values: Iterable[object]) -> Scale:
    """Suggest a scale from the values that a file has.

    Numbers from -1 to 1 stay as they are. If most of a "reward", "score" or "value" (and three at
    least), or a tenth of anything else, lies outside, or all of anything else are whole numbers
    from 1, the smallest customary scale that holds nearly all of them is taken, and of no such
    scale the lowest to the highest value; all become 0 to 1. Percentages go from 0 to 100. Where
    most values of anything else are words without a meaning here, they are not used.
    """
    found = _sort(values)
    numbers = found.numbers
    if found.others > len(numbers) + found.truths and name not in OWN_NAMES:
        return Scale(name=name, used=False)
    if found.truths > len(numbers):
        return Scale(name=name, kind=ScaleKind.YES_NO, to_low=0.0, to_high=1.0)
    if 2 * found.percentages > len(numbers):
        return Scale(name=name, low=0.0, high=100.0, to_low=0.0, to_high=1.0)
    if _is_own(name, numbers):
        return Scale(name=name)
    lowest, highest = min(numbers), max(numbers)
    for low, high in _FROM_ONE if lowest >= 1 else _FROM_ZERO:
        inside = sum(low <= number <= high for number in numbers)
        if inside >= _NEARLY_ALL * len(numbers):
            return Scale(name=name, low=low, high=high, to_low=0.0, to_high=1.0)
    if lowest == highest:
        return Scale(name=name)
    return Scale(name=name, low=lowest, high=highest, to_low=0.0, to_high=1.0)


def _is_own(name: str, numbers: Sequence[float]) -> bool:
    """Return whether numbers are taken for scores on the product's own scale."""
    outside = sum(not SCORE_MIN <= number <= SCORE_MAX for number in numbers)
    if name in OWN_NAMES:
        return outside <= max(0.5 * len(numbers), ENOUGH - 1)
    # a scale from -1 to 1 would have something below 1 too
    counts = len(numbers) >= ENOUGH and all(n >= 1 and n.is_integer() for n in numbers)
    return not counts and outside <= 0.1 * len(numbers)


def _sort(values: Iterable[object]) -> _Sorted:
    found = _Sorted()
    for value in values:
        if is_none(value):
            continue
        if is_yes_or_no(value):
            found.truths += 1
            continue
        try:
            found.numbers.append(number_of(value))
        except UntrustedError:
            found.others += 1
        else:
            found.percentages += is_percentage(value)
    return found
