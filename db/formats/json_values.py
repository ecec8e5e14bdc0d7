"""One JSON value as text, and what to say where it is none."""

import json
import math

from db.formats.source import LARGEST_ROW_BYTES

REMEDY = "Correct that place and import the file again."
TOO_DEEP = "the JSON is nested too deeply"
TOO_LONG = f"the row is longer than {LARGEST_ROW_BYTES // 2**20} MB"
_LONGEST_INTEGER = 300  # digits; longer ones do not fit into a float, and Python refuses 4300


def loads(text: str) -> object:
    """Read a JSON value.

    Raises:
        ValueError: if it is malformed (JSONDecodeError), or nested too deeply.
    """
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def _integer(digits: str) -> int | float:
    """Read an integer; one beyond all use becomes infinite and is refused with its field."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


decoder = json.JSONDecoder(parse_int=_integer)


def is_cut_off(error: json.JSONDecodeError) -> bool:
    """Return whether the text is fine but for its missing end."""
    rest = error.doc[error.pos :]
    return (
        error.msg.startswith("Unterminated string")
        or not rest.strip()
        or (rest.startswith("\\") and len(rest) < 6)
        or any(word.startswith(rest) for word in ("true", "false", "null", "NaN", "-Infinity", "-"))
    )


def malformed_words(message: str) -> str:
    """Return a parser's message as a part of a sentence."""
    return f"the JSON is malformed ({message[0].lower()}{message[1:]})"
