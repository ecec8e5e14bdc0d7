"""Text that every database and every JSON file can hold."""

import re
from typing import Any, cast

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

MAX_NAME_CHARS = 100
"""The longest name of a person, a run or a collection."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_NOT_ON_A_LINE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    """Return `text` with NUL characters and lone surrogates replaced by U+FFFD.

    PostgreSQL stores neither, UTF-8 cannot encode the latter, and SQLite cuts text off at the
    former in some of its functions; so neither ever enters the database or a file.
    """
    if text.isascii() and "\x00" not in text:  # known at once, and most text is
        return text
    return _UNSTORABLE.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    """Return `text` as a name: on one line, trimmed, and nothing in it that turns its direction."""
    return " ".join(clean(_NOT_ON_A_LINE.sub(" ", text)).split())


def clean_json(value: Any) -> Any:
    """Return JSON data with every text in it, keys included, cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {clean(key): clean_json(entry) for key, entry in items}
    if isinstance(value, list | tuple):
        return [clean_json(entry) for entry in cast("list[Any]", value)]
    return value
