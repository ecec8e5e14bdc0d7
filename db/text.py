"""Text that every database and every JSON file can hold."""

import re
from typing import Any, cast

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Return `text` with NUL characters and lone surrogates replaced by U+FFFD.

    PostgreSQL stores neither, UTF-8 cannot encode the latter, and SQLite cuts text off at the
    former in some of its functions; so neither ever enters the database or a file.
    """
    if text.isascii() and "\x00" not in text:  # known at once, and most text is
        return text
    return _UNSTORABLE.sub(REPLACEMENT, text)


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
