"""What makes the scores of a file doubtful as a whole, however well each of them can be read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from db.formats.guessing import ENOUGH, OWN_NAMES
from db.formats.scales import Scale, ScaleKind
from db.formats.values import is_none, is_number, is_percentage, is_yes_or_no, number_of, shortened
from db.records import ImportIssue, IssueOutcome

_NEARLY_NUMBER = re.compile(r"\s*[+-]?\d+([.,]\d+)?\s*(/|of\b|out of\b|stars?\b|points?\b).*", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Why one kind of score deserves a look.

    Attributes:
        label: It in a word or three.
        reason: It in half a sentence about the scores.
        is_of_scale: Whether nobody can tell which scale they are on: then none is used until a
            person says so.
    """

    label: str
    reason: str
    is_of_scale: bool


def find_doubt(scale: Scale, values: Sequence[object], *, is_guess: bool) -> Doubt | None:
    """Return what is doubtful about the values of one kind of score, if anything is.

    Args:
        scale: How they would be read.
        values: As the file has them.
        is_guess: Whether the scale was guessed from them; else the format defines it.
    """
    told = [value for value in values if not is_none(value)]
    percentage = next((value for value in told if is_percentage(value)), None)
    other = next((value for value in told if not is_percentage(value)), None)
    if percentage is not None and other is not None:
        return Doubt(
            label="some in percent",
            reason=f"some are percentages ({shortened(percentage)}) and others are not "
            f"({shortened(other)})",
            is_of_scale=True,
        )
    unread = [value for value in told if not (is_number(value) or is_yes_or_no(value))]
    nearly = [value for value in unread if _NEARLY_NUMBER.fullmatch(str(value))]
    if 2 * len(nearly) > len(told):
        return Doubt(
            label="no plain numbers",
            reason=f"most are no plain numbers ({shortened(nearly[0])})",
            is_of_scale=True,
        )
    if len(told) >= ENOUGH and len({_same(value) for value in told}) == 1 and scale.used:
        own = scale.is_identity and scale.name in OWN_NAMES
        unknown = is_guess and scale.kind is ScaleKind.NUMBER and not own
        why = "no other value tells whether that is much" if unknown else "set no reply apart"
        return Doubt(
            label="all the same",
            reason=f"all {len(told)} in the rows looked at are {shortened(told[0])}, and {why}",
            is_of_scale=unknown,
        )
    return None


def doubt_issue(scale: Scale, doubt: Doubt) -> ImportIssue | None:
    """Return what to report of doubtful scores that are read so; None if nobody wants them.

    Args:
        scale: How they are read.
        doubt: What is doubtful about them.
    """
    if not scale.used and not doubt.is_of_scale:
        return None
    became = f"they are read so: {scale.words}" if scale.used else "they are left out"
    remedy = "Leave them out if they are no judgement of these replies."
    if not scale.used:
        remedy = "Say which scale they are on, and use them."
    return ImportIssue(
        row=0,
        field=scale.name,
        reason=f"of the scores named {scale.name!r} {doubt.reason}; {became}",
        remedy=remedy,
        outcome=IssueOutcome.FLAGGED,
    )


def _same(value: object) -> object:
    """Return what equal values have in common, however they are written."""
    if is_yes_or_no(value):
        return str(value).strip().lower()
    return number_of(value) if is_number(value) else str(value)
