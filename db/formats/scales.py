"""How a file's own scores become the product's: a rule that a person sees and edits."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, cast

from db.errors import DataError
from db.formats.values import (
    BEYOND_USE,
    UntrustedError,
    is_none,
    is_percentage,
    number_of,
    shortened,
    truth_of,
)
from db.records import SCORE_MAX, SCORE_MIN


class ScaleKind(StrEnum):
    """What the values of a scale are."""

    NUMBER = "number"
    YES_NO = "yes_no"
    """True or false, chosen or rejected, thumbs up or down."""
    RANK = "rank"
    """The place among the replies to one prompt; the best one's is `high`."""


class ScoreTarget(StrEnum):
    """What a score is about."""

    AS_FILE = "as_file"
    """Whatever the format says."""
    LAST_REPLY = "last_reply"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How one kind of score in a file is read: a straight line from its scale to the product's.

    Attributes:
        name: What the file calls it ("helpfulness").
        low: The worst value on the file's scale; not used for yes or no, and ranks.
        high: The best value (for ranks that of the first place); may be smaller than `low`.
        to_low: What the worst becomes, in [-1, 1].
        to_high: What the best becomes, in [-1, 1].
        used: Whether it becomes a score. Where several do for one reply, their mean counts.
        target: What it is about.
    """

    name: str
    kind: ScaleKind = ScaleKind.NUMBER
    low: float = SCORE_MIN
    high: float = SCORE_MAX
    to_low: float = SCORE_MIN
    to_high: float = SCORE_MAX
    used: bool = True
    target: ScoreTarget = ScoreTarget.AS_FILE

    @property
    def is_identity(self) -> bool:
        """Whether values stay as they are."""
        ends = (self.low, self.high) == (self.to_low, self.to_high)
        return self.kind is ScaleKind.NUMBER and ends and self.target is ScoreTarget.AS_FILE

    @property
    def words(self) -> str:
        """The rule in a few words, like "1 to 5 becomes 0 to 1"."""
        if not self.used:
            return "not used"
        to = f"{self.to_low:g} to {self.to_high:g}"
        match self.kind:
            case ScaleKind.YES_NO:
                return f"no is {self.to_low:g}, yes is {self.to_high:g}"
            case ScaleKind.RANK:
                return f"last to first place (rank {self.high:g}) becomes {to}"
            case ScaleKind.NUMBER:
                return (
                    "as it is"
                    if self.is_identity
                    else f"{self.low:g} to {self.high:g} becomes {to}"
                )

    def check(self) -> None:
        """Refuse a scale that maps nothing.

        Raises:
            DataError: if its ends are equal or not finite, or lie outside the product's scale.
        """
        ends = (self.low, self.high, self.to_low, self.to_high)
        problem = ""
        if not all(math.isfinite(end) for end in ends):
            problem = "the ends of the scale are not finite numbers"
        elif self.kind is ScaleKind.NUMBER and self.low == self.high:
            problem = "the worst and the best value are the same"
        elif not all(SCORE_MIN <= end <= SCORE_MAX for end in ends[2:]):
            problem = f"scores lie between {SCORE_MIN:g} and {SCORE_MAX:g}"
        if problem:
            raise DataError(
                problem, where=f"scale {self.name!r}", remedy="Correct the scale's ends."
            )

    def value(self, raw: object, siblings: int = 1) -> float | None:
        """Return the product's score for a value of the file; None where it says "no score".

        Args:
            raw: The value; numbers may be written as text.
            siblings: For ranks: how many replies were ranked.

        Raises:
            UntrustedError: if the value is not on the scale.
        """
        if is_none(raw):
            return None
        match self.kind:
            case ScaleKind.YES_NO:
                return self.to_high if truth_of(raw) else self.to_low
            case ScaleKind.RANK:
                return self._ranked(self._number(raw), siblings)
            case ScaleKind.NUMBER:
                return self._on_line(self._number(raw))

    def _number(self, raw: object) -> float:
        if is_percentage(raw) and 100 not in (abs(self.low), abs(self.high)):
            raise UntrustedError(
                f"{shortened(raw)} is a percentage, and the scale goes from {self.low:g} to {self.high:g}"
            )
        return number_of(raw)

    def _on_line(self, number: float) -> float:
        if not min(self.low, self.high) <= number <= max(self.low, self.high):
            raise UntrustedError(
                f"{number:g} is outside the scale from {self.low:g} to {self.high:g}"
            )
        if (self.low, self.high) == (self.to_low, self.to_high):
            return number
        share = (number - self.low) / (self.high - self.low)
        return _between(self.to_low, self.to_high, share)

    def _ranked(self, rank: float, siblings: int) -> float | None:
        place = rank - self.high
        if place != int(place) or not 0 <= place < max(siblings, 1):
            raise UntrustedError(
                f"rank {rank:g} is no place among {siblings} replies, counted from {self.high:g}"
            )
        if siblings < 2:
            return None  # nothing to be better than
        return _between(self.to_low, self.to_high, 1 - place / (siblings - 1))


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """How all kinds of scores in a file are read; a person may edit it before the import."""

    scales: tuple[Scale, ...] = ()

    def scale(self, name: str) -> Scale | None:
        """Return the scale of one kind of score."""
        return next((scale for scale in self.scales if scale.name == name), None)

    def with_defaults(self, scales: Iterable[Scale]) -> "ScoreRule":
        """Return this rule with scales added for names that it says nothing of."""
        known = {scale.name for scale in self.scales}
        return ScoreRule((*self.scales, *(s for s in scales if s.name not in known)))

    def to_json(self) -> dict[str, Any]:
        """Return the rule as JSON data."""
        return {"scales": [asdict(scale) for scale in self.scales]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ScoreRule":
        """Return the rule that `to_json` gave.

        Raises:
            DataError: if a field is unknown, missing or of the wrong kind, or a scale maps nothing.
        """
        scales = data.get("scales")
        if data.keys() != {"scales"} or not isinstance(scales, list):
            raise _broken('it is {"scales": [...]}')
        entries = cast("list[object]", scales)
        rule = cls(tuple(_scale_from_json(entry) for entry in entries))
        if len({scale.name for scale in rule.scales}) < len(rule.scales):
            raise _broken("two scales have the same name")
        return rule


def _scale_from_json(entry: object) -> Scale:
    if not isinstance(entry, dict):
        raise _broken("a scale is an object")
    data = cast("dict[str, Any]", entry)
    known = {field.name for field in fields(Scale)}
    if not data.keys() <= known or not isinstance(data.get("name"), str):
        raise _broken(f"a scale has a name and any of {', '.join(sorted(known))}")
    numbers = [data[key] for key in ("low", "high", "to_low", "to_high") if key in data]
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        raise _broken("the ends of a scale are numbers")
    if not all(abs(n) < BEYOND_USE for n in numbers):
        raise _broken("the ends of a scale are too large")
    if not isinstance(data.get("used", True), bool):
        raise _broken('"used" is true or false')
    try:
        kind = ScaleKind(data.get("kind", ScaleKind.NUMBER))
        target = ScoreTarget(data.get("target", ScoreTarget.AS_FILE))
    except ValueError as error:
        raise _broken(str(error)) from None
    known_fields: dict[str, Any] = {**data, "kind": kind, "target": target}
    scale = Scale(**known_fields)
    scale.check()
    return scale


def _broken(what: str) -> DataError:
    return DataError(
        f"the rule for scores is malformed: {what}",
        where="rule",
        remedy="Start again from the suggested rule.",
    )


def _between(low: float, high: float, share: float) -> float:
    """Return the point at a share of the way, exact at both ends."""
    return low * (1 - share) + high * share
