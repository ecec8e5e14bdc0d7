"""What one value of a file says as a score: a number, yes or no, or that there is none."""

import math
import re

YES = frozenset(
    ["true", "yes", "y", "good", "chosen", "accepted", "like", "liked", "up", "thumbs_up",
     "thumbsup", "thumb_up", "positive", "helpful", "correct", "pass", "1", "1.0", "+1", "👍", "✓"]
)  # fmt: skip
NO = frozenset(
    ["false", "no", "n", "bad", "rejected", "dislike", "disliked", "down", "thumbs_down",
     "thumbsdown", "thumb_down", "negative", "unhelpful", "incorrect", "wrong", "fail", "0", "0.0",
     "-1", "👎", "✗"]
)  # fmt: skip
BEYOND_USE = 1e300
_WORDS = (YES | NO) - {"1", "1.0", "+1", "0", "0.0", "-1"}
_NONE = frozenset(["", "n/a", "na", "nan", "none", "null", "-", "–", "?", "<na>", "#n/a"])
_NUMBER = re.compile(r"([+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?)(?:\s*[%％])?")


class UntrustedError(ValueError):
    """A value is no score on its scale; says why."""


def is_none(raw: object) -> bool:
    """Return whether a value says that there is no score: null, an empty text, "N/A" ..."""
    return raw is None or (isinstance(raw, str) and raw.strip().lower() in _NONE)


def is_yes_or_no(raw: object) -> bool:
    """Return whether a value is true, false or a word that says so; 0 and 1 are numbers first."""
    return isinstance(raw, bool) or (isinstance(raw, str) and _word(raw) in _WORDS)


def is_percentage(raw: object) -> bool:
    """Return whether a value is a number with a percent sign."""
    return isinstance(raw, str) and raw.rstrip().endswith(("%", "％")) and is_number(raw)


def is_number(raw: object) -> bool:
    """Return whether `number_of` reads a value."""
    try:
        number_of(raw)
    except UntrustedError:
        return False
    return True


def number_of(raw: object) -> float:
    """Return a number, also one written as text, with a percent sign (85 for 85 %) or as stars.

    Raises:
        UntrustedError: if it is none, or not finite.
    """
    if isinstance(raw, bool):
        raise UntrustedError(f"{raw} is not a number")
    if isinstance(raw, int | float):
        number = float(raw) if abs(raw) < BEYOND_USE else math.inf
    else:
        text = raw.strip() if isinstance(raw, str) else ""
        if text and set(text) <= set("★☆⭐\ufe0f"):
            return float(text.count("★") + text.count("⭐"))
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise UntrustedError(f"{shortened(raw)} is not a number")
        number = float(found[1].replace(",", "."))
    if not math.isfinite(number):
        raise UntrustedError(f"{number} is not a finite number")
    return number


def truth_of(raw: object) -> bool:
    """Return whether a value says yes.

    Raises:
        UntrustedError: if it says neither yes nor no.
    """
    if isinstance(raw, str):
        word = _word(raw)
        if word in YES or word in NO:
            return word in YES
    elif isinstance(raw, bool) or (isinstance(raw, int | float) and raw in (0, 1, -1)):
        return raw > 0
    raise UntrustedError(f"{shortened(raw)} is neither yes nor no")


def shortened(value: object) -> str:
    """Return a value as a message may show it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _word(text: str) -> str:
    return text.strip().lower().replace(" ", "_")
