"""Rows of JSON lines, one after another, in bounded memory."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator

import orjson

from db.formats.encoding import Decoder
from db.formats.json_values import REMEDY, TOO_LONG, is_cut_off, loads, malformed_words
from db.formats.rows import Row, cut_off, mended
from db.formats.source import LARGEST_ROW_BYTES
from db.records import ImportIssue

_LONG_NUMBER = re.compile(rb"\d{19}")  # orjson would round an integer of that length


def json_lines(chunks: Iterable[bytes], decoder: Decoder) -> Iterator[Row | ImportIssue]:
    """Yield the rows of JSON lines; a line that is no JSON gives an issue and is passed over.

    Empty lines do not count as rows. Lines end with LF, CR LF or CR, also mixed.
    """
    if not decoder.encoding.is_utf8:
        chunks = (text.encode("utf-8", "replace") for text in decoder.texts(chunks))
    row = 0
    for number, line, complete in _lines(chunks):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
        row += 1
        place = f"line {number}"
        if len(line) > LARGEST_ROW_BYTES:
            yield _too_long(row, place)
            continue
        try:
            yield Row(row, _loads_line(line, decoder))
        except json.JSONDecodeError as error:
            if not complete and is_cut_off(error):
                yield cut_off(row, place)
            else:
                yield _malformed(row, f"{place}, column {error.colno}", error.msg)
        except ValueError as error:
            yield ImportIssue(row=row, field=place, reason=str(error), remedy="Flatten it.")
        if decoder.mended:
            decoder.mended = False
            yield mended(row, place)


def _loads_line(line: bytes, decoder: Decoder) -> object:
    """Read a line; what orjson refuses or would round is judged by the standard library."""
    if not _LONG_NUMBER.search(line):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            pass
    return loads(decoder.line(line))


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Yield each line that says something: its number, itself, and whether it is ended.

    A line beyond the limit keeps only its length.
    """
    parts: list[bytes] = []
    kept = 0
    number = 1
    after_cr = False
    for chunk in chunks:
        if after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        after_cr = chunk.endswith(b"\r") if chunk else after_cr
        if not parts and chunk.isspace():  # a file may hold millions of empty lines
            number += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
            continue
        for piece in chunk.splitlines(keepends=True):
            if kept <= LARGEST_ROW_BYTES:
                parts.append(piece)
                kept += len(piece)
            if piece.endswith((b"\n", b"\r")):
                line = b"".join(parts)
                if not line.isspace():
                    yield number, line, True
                parts, kept = [], 0
                number += 1
    line = b"".join(parts)
    if line and not line.isspace():
        yield number, line, False


def _malformed(row: int, place: str, message: str) -> ImportIssue:
    return ImportIssue(row=row, field=place, reason=malformed_words(message), remedy=REMEDY)


def _too_long(row: int, place: str) -> ImportIssue:
    return ImportIssue(
        row=row,
        field=place,
        reason=TOO_LONG,
        remedy="Split it, or take out what is no conversation.",
    )


def is_lines(head: str, *, complete: bool) -> bool:
    """Return whether a text that begins so is JSON lines rather than one document.

    It is if two lines begin with a brace in the first column, or if a first line that is a
    complete value of its own is followed by more.

    Args:
        head: The beginning of the text.
        complete: Whether that is all of it.
    """
    lines = [line for line in head.replace("\r", "\n").split("\n") if line.strip()]
    if len(lines) < 2:
        return False
    if lines[0].startswith("{") and lines[1].startswith("{"):
        return True
    try:
        first = loads(lines[0])
    except ValueError:
        return False
    return isinstance(first, dict | list)
