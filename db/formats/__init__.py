"""Conversation formats: bytes to conversations and back; no database in it."""

from collections.abc import Iterable
from typing import cast

from db.errors import DataError
from db.formats.fields import check_values, describe
from db.formats.native import NATIVE
from db.formats.openai import OPENAI
from db.formats.reading import read_rows
from db.formats.recipe import RECIPE
from db.formats.result import Format, Notes, ParsedFile, RowError
from db.formats.sharegpt import SHAREGPT
from db.records import Conversation, ImportIssue

__all__ = ["AUTO", "READABLE", "WRITABLE", "ParsedFile", "parse", "write"]

AUTO = "auto"

_FORMATS = {format.name: format for format in (NATIVE, RECIPE, OPENAI, SHAREGPT)}

READABLE = tuple(_FORMATS)
"""Names of the formats that `parse` reads."""

WRITABLE = tuple(name for name, format in _FORMATS.items() if format.write_row is not None)
"""Names of the formats that `write` writes."""


def parse(data: bytes, *, format: str = AUTO) -> ParsedFile:
    """Read the conversations of a JSON or JSON-lines file.

    A row that cannot be read is reported in `skipped` and does not keep the others out. Text is
    kept as it is, except for NUL characters and lone surrogates, which become U+FFFD.

    Args:
        data: The file's bytes; UTF-8, or Windows-1252 or UTF-16 with a warning.
        format: One of `READABLE`, or "auto" to recognise it from the content.

    Raises:
        DataError: if the file is empty, no well-formed JSON (naming line and column), or of none
            of the formats.
    """
    read = read_rows(data)
    chosen = _recognise(read.rows) if format == AUTO else _named(format, READABLE)
    notes = Notes()
    conversations: list[Conversation] = []
    rows: list[int] = []
    skipped: list[ImportIssue] = []
    for number, row in enumerate(read.rows, start=1):
        notes.row = number
        try:
            check_values(row, notes)
            conversation = chosen.parse_row(row, notes)
        except RowError as error:
            notes.forget_row()
            skipped.append(
                ImportIssue(row=number, field=error.where, reason=error.what, remedy=error.remedy)
            )
            continue
        if not conversation.assistant_messages:
            notes.add("there is no assistant turn, so there is nothing to score")
        conversations.append(conversation)
        rows.append(number)
    return ParsedFile(
        format=chosen.name,
        conversations=tuple(conversations),
        rows=tuple(rows),
        skipped=tuple(skipped),
        warnings=(*read.warnings, *notes.lines()),
    )


def write(conversations: Iterable[Conversation], format: str) -> str:
    """Return conversations as JSON lines in a format.

    "native" loses nothing: reading it gives equal conversations. "openai" keeps what was said.

    Raises:
        DataError: if there is no such format, or a number in a conversation is not finite.
    """
    write_row = _named(format, WRITABLE).write_row
    assert write_row is not None  # it is one of WRITABLE
    try:
        return "".join(write_row(conversation) + "\n" for conversation in conversations)
    except ValueError as error:
        raise DataError(
            f"a conversation cannot be written ({error})",
            where="export",
            remedy="Look for numbers that are not finite in its tool calls.",
        ) from None


def _named(name: str, names: tuple[str, ...]) -> Format:
    if name not in names:
        raise DataError(
            f"there is no format named {name!r} here",
            where="format",
            remedy=f"The formats are: {', '.join(names)}.",
        )
    return _FORMATS[name]


def _recognise(rows: list[object]) -> Format:
    """Return the format of most rows; native if any row says more than openai can."""
    if any(NATIVE.recognises(row) for row in rows):
        return NATIVE
    counts = {
        format.name: sum(format.recognises(row) for row in rows)
        for format in (RECIPE, OPENAI, SHAREGPT)
    }
    name = max(counts, key=lambda key: counts[key])
    if counts[name] == 0:
        raise DataError(
            f"this is none of the known formats: its first row is {_shape(rows[0])}",
            where="row 1",
            remedy='A row has "messages" (native, openai), "turns" (recipe) or "conversations" '
            "(sharegpt).",
        )
    return _FORMATS[name]


def _shape(row: object) -> str:
    if not isinstance(row, dict):
        return describe(row)
    keys = [repr(key)[:40] for key in cast("dict[str, object]", row)]
    return f"an object with {', '.join(keys[:6])}" if keys else "an empty object"
