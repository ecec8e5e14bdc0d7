"""Which scale a file's scores are on, guessed from their values."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from db.formats.scales import NO, YES, Scale, ScaleKind, UntrustedError, is_none, number_of
from db.records import SCORE_MAX, SCORE_MIN

_WORDS = (YES | NO) - {"1", "1.0", "+1", "0", "0.0", "-1"}
_FROM_ZERO = ((0.0, 4.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))
_FROM_ONE = ((1.0, 5.0), (1.0, 7.0), (1.0, 10.0), (1.0, 100.0))
_OWN_NAMES = frozenset({"reward", "score", "value"})
_NEARLY_ALL = 0.98


@dataclass(slots=True)
class _Sorted:
    """The values of one kind of score, by what they are."""

    numbers: list[float] = field(default_factory=list[float])
    truths: int = 0
    others: int = 0


def guess_scale(name: str, values: Iterable[object]) -> Scale:
    """Suggest a scale from the values that a file has.

    Numbers from -1 to 1 stay as they are. If most of a "reward", "score" or "value" (and three at
    least), or a tenth of anything else, lies outside, the smallest customary scale that holds
    nearly all of them is taken, and of no such scale the lowest to the highest value; all become
    0 to 1. Where most values of anything else are words without a meaning here, they are not used.
    """
    found = _sort(values)
    numbers = found.numbers
    if found.others > len(numbers) + found.truths and name not in _OWN_NAMES:
        return Scale(name=name, used=False)
    if found.truths > len(numbers):
        return Scale(name=name, kind=ScaleKind.YES_NO, to_low=0.0, to_high=1.0)
    outside = sum(not SCORE_MIN <= number <= SCORE_MAX for number in numbers)
    tolerated = max(0.5 * len(numbers), 2) if name in _OWN_NAMES else 0.1 * len(numbers)
    if outside <= tolerated:
        return Scale(name=name)
    lowest, highest = min(numbers), max(numbers)
    for low, high in _FROM_ONE if lowest >= 1 else _FROM_ZERO:
        inside = sum(low <= number <= high for number in numbers)
        if inside >= _NEARLY_ALL * len(numbers):
            return Scale(name=name, low=low, high=high, to_low=0.0, to_high=1.0)
    if lowest == highest:
        return Scale(name=name)
    return Scale(name=name, low=lowest, high=highest, to_low=0.0, to_high=1.0)


def _sort(values: Iterable[object]) -> _Sorted:
    found = _Sorted()
    for value in values:
        if is_none(value):
            continue
        if isinstance(value, bool) or (isinstance(value, str) and value.strip().lower() in _WORDS):
            found.truths += 1
            continue
        try:
            found.numbers.append(number_of(value))
        except UntrustedError:
            found.others += 1
    return found
