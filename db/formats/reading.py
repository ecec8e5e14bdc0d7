"""Bytes to rows: encodings, JSON or JSON lines, and errors that name the place."""

import json
import math
from dataclasses import dataclass
from typing import NoReturn, cast

from db.errors import DataError
from db.formats.fields import is_object_with
from db.formats.messages import MESSAGE_KEYS

_OTHER_KINDS = {
    b"\x1f\x8b": "a gzip archive: unpack it first",
    b"PK\x03\x04": "a zip archive or spreadsheet: unpack it, or export it as JSON",
    b"PAR1": "a Parquet file: export it as JSON lines",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "a SQLite database",
    b"\x89PNG": "a picture",
}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LONE_MESSAGE_KEYS = MESSAGE_KEYS | {"from", "value", "name"}
_LONGEST_INTEGER = 300  # digits; longer ones do not fit into a float, and Python refuses 4300


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file, and what was remarkable about reading it."""

    rows: list[object]
    warnings: tuple[str, ...]


def read_rows(data: bytes) -> Rows:
    """Read the rows of a JSON document or of JSON lines.

    A list gives its entries, an object of the form {"data": [...]} those of that list, any other
    object one row.

    Raises:
        DataError: if the file is empty, no text, or no well-formed JSON; it names line and column
            (for JSON lines the row, too).
    """
    text, warnings = _decode(data)
    if not text.strip():
        raise DataError(
            "the file is empty", where="file", remedy="Choose a file that holds conversations."
        )
    start = text.lstrip()[0]
    if start not in "[{":
        line = text[: len(text) - len(text.lstrip())].count("\n") + 1
        raise DataError(
            f"this is no JSON: it begins with {text.strip()[:30]!r}",
            where=f"line {line}",
            remedy="JSON begins with [ or {. Choose a .json or .jsonl file.",
        )
    rows = _parse_lines(text) if _is_lines(text) else _parse_document(text)
    if not rows:
        raise DataError(
            "the list is empty: there are no conversations in it",
            where="file",
            remedy="Choose a file that holds conversations.",
        )
    return Rows(rows, warnings)


def _decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    for mark, kind in _OTHER_KINDS.items():
        if data.startswith(mark):
            raise DataError(f"this is {kind}", where="file", remedy="Import JSON or JSON lines.")
    try:
        if data.startswith(_UTF16_MARKS):
            return data.decode("utf-16"), ("the file was read as UTF-16, not UTF-8",)
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
    try:
        if b"\x00" not in data:
            warning = (
                f"the file is not UTF-8 (line {line}) and was read as Windows-1252; check its "
                "accents and quotation marks"
            )
            return data.decode("cp1252"), (warning,)
    except UnicodeDecodeError:
        pass
    raise DataError(
        "this is not a text file, or its encoding is unknown",
        where=f"line {line}",
        remedy="Save it as UTF-8 and import it again.",
    )


def _is_lines(text: str) -> bool:
    """Return whether the text is JSON lines rather than one document.

    It is if two lines begin with a brace in the first column, or if a first line that is a
    complete value of its own is followed by more.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return False
    if lines[0].startswith("{") and lines[1].startswith("{"):
        return True
    try:
        _loads(lines[0])
    except (ValueError, RecursionError):
        return False
    return True


def _parse_lines(text: str) -> list[object]:
    rows: list[object] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            row = len(rows) + 1
            try:
                rows.append(_loads(line))
            except json.JSONDecodeError as error:
                _refuse(error.msg, f"row {row}, line {number}, column {error.colno}")
            except RecursionError:
                _refuse_depth(f"row {row}, line {number}")
    return rows


def _parse_document(text: str) -> list[object]:
    try:
        document = _loads(text)
    except json.JSONDecodeError as error:
        _refuse(error.msg, f"line {error.lineno}, column {error.colno}")
    except RecursionError:
        _refuse_depth("file")
    if is_object_with(document, "data"):
        inner = cast("dict[str, object]", document)["data"]
        if isinstance(inner, list):
            return cast("list[object]", inner)
    if isinstance(document, list) and not _is_conversation(cast("list[object]", document)):
        return cast("list[object]", document)
    return [document]


def _is_conversation(entries: list[object]) -> bool:
    """Return whether a list's entries are nothing but the messages of a single conversation."""
    return bool(entries) and all(_is_lone_message(entry) for entry in entries)


def _is_lone_message(entry: object) -> bool:
    if not (is_object_with(entry, "role") or is_object_with(entry, "from", "value")):
        return False
    return cast("dict[str, object]", entry).keys() <= _LONE_MESSAGE_KEYS


def _loads(text: str) -> object:
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """Read an integer; one beyond all use becomes infinite and is refused with its field."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


def _refuse(message: str, where: str) -> NoReturn:
    raise DataError(
        f"the JSON is malformed ({message[0].lower()}{message[1:]})",
        where=where,
        remedy="Correct that place and import the file again; nothing was imported.",
    )


def _refuse_depth(where: str) -> NoReturn:
    raise DataError("the JSON is nested too deeply", where=where, remedy="Flatten it.")
