"""Rows of JSON lines and of JSON documents, one after another, in bounded memory."""

import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn, cast

import orjson

from db.errors import DataError
from db.formats.encoding import Decoder, Encoding
from db.formats.rows import Row, cut_off, mended
from db.formats.source import LARGEST_ROW_BYTES
from db.records import ImportIssue

_LONG_NUMBER = re.compile(rb"\d{19}")  # orjson would round an integer of that length
_REMEDY = "Correct that place and import the file again."
_TOO_DEEP = "the JSON is nested too deeply"
_TOO_LONG = f"the row is longer than {LARGEST_ROW_BYTES // 2**20} MB"
_SPACE = " \t\r\n"
_LIST_KEY = re.compile(r'\{\s*"data"\s*:\s*(?=\[)')
_LONGEST_INTEGER = 300  # digits; longer ones do not fit into a float, and Python refuses 4300


def json_lines(chunks: Iterable[bytes], encoding: Encoding) -> Iterator[Row | ImportIssue]:
    """Yield the rows of JSON lines; a line that is no JSON gives an issue and is passed over.

    Empty lines do not count as rows. Lines end with LF, CR LF or CR, also mixed.
    """
    decoder = Decoder(encoding)
    if not encoding.is_utf8:
        chunks = (text.encode("utf-8", "replace") for text in decoder.texts(chunks))
    row = 0
    for number, (line, complete) in enumerate(_lines(chunks), start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line or line.isspace():
            continue
        row += 1
        place = f"line {number}"
        if len(line) > LARGEST_ROW_BYTES:
            yield _too_long(row, place)
            continue
        try:
            yield Row(row, _loads_line(line, decoder))
        except json.JSONDecodeError as error:
            if not complete and _is_cut_off(error):
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


def loads(text: str) -> object:
    """Read a JSON value.

    Raises:
        ValueError: if it is malformed (JSONDecodeError), or nested too deeply.
    """
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _integer(digits: str) -> int | float:
    """Read an integer; one beyond all use becomes infinite and is refused with its field."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


_decoder = json.JSONDecoder(parse_int=_integer)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each line, and whether it is ended; a line beyond the limit keeps only its length."""
    parts: list[bytes] = []
    kept = 0
    after_cr = False
    for chunk in chunks:
        if after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        after_cr = chunk.endswith(b"\r") if chunk else after_cr
        for piece in chunk.splitlines(keepends=True):
            if kept <= LARGEST_ROW_BYTES:
                parts.append(piece)
                kept += len(piece)
            if piece.endswith((b"\n", b"\r")):
                yield b"".join(parts), True
                parts, kept = [], 0
    if parts:
        yield b"".join(parts), False


@dataclass(slots=True)
class _Window:
    """A part of a document that slides along it as values are taken from its front."""

    texts: Iterator[str]
    text: str = ""
    start: int = 0  # of what is not taken yet
    at_end: bool = False
    line: int = 1  # of the window's beginning
    column: int = 1

    def grow(self) -> bool:
        """Append more text (as much as there is, so that retries stay few); False at the end."""
        self._drop_taken()
        wanted = max(len(self.text), 1)
        added: list[str] = []
        while wanted > 0:
            more = next(self.texts, None)
            if more is None:
                self.at_end = True
                break
            added.append(more)
            wanted -= len(more)
        self.text += "".join(added)
        return bool(added)

    def skip_space(self) -> str:
        """Move to the next character that is no space and return it; empty at the end."""
        while True:
            while self.start < len(self.text) and self.text[self.start] in _SPACE:
                self.start += 1
            if self.start < len(self.text):
                return self.text[self.start]
            if not self.grow():
                return ""

    def value(self) -> object:
        """Take the value that begins here.

        Raises:
            JSONDecodeError: if it is malformed or cut off; its position is in the window.
            ValueError: if it is nested too deeply or too long.
        """
        while True:
            try:
                value, end = _decoder.raw_decode(self.text, self.start)
            except RecursionError:
                raise ValueError(_TOO_DEEP) from None
            except json.JSONDecodeError as error:
                if self.at_end or not _may_go_on(error, len(self.text)):
                    raise
                if len(self.text) - self.start > LARGEST_ROW_BYTES:
                    raise ValueError(_TOO_LONG) from None
            else:
                if end - self.start > LARGEST_ROW_BYTES:
                    raise ValueError(_TOO_LONG)
                if end < len(self.text) or self.at_end:  # a number could go on
                    self.start = end
                    return value
            self.grow()

    def place(self, position: int | None = None) -> str:
        """Name line and column of a position in the window, by default of the next character."""
        position = self.start if position is None else position
        lines = self.text.count("\n", 0, position)
        if lines:
            return f"line {self.line + lines}, column {position - self.text.rfind(chr(10), 0, position)}"
        return f"line {self.line}, column {self.column + position}"

    def _drop_taken(self) -> None:
        lines = self.text.count("\n", 0, self.start)
        self.line += lines
        self.column = (
            self.start - self.text.rfind("\n", 0, self.start) if lines else self.column + self.start
        )
        self.text, self.start = self.text[self.start :], 0


def json_document(chunks: Iterable[bytes], encoding: Encoding) -> Iterator[Row | ImportIssue]:
    """Yield the rows of a JSON document: the entries of its list, or the one object.

    {"data": [...]} gives that list's entries. Several values one after another are as many rows.
    The entries before the place where a file is cut off are read.

    Raises:
        DataError: if the document is malformed, naming line and column.
    """
    decoder = Decoder(encoding)
    window = _Window(decoder.texts(chunks))
    window.grow()
    window.skip_space()
    row = 0
    for item in _values(window):
        if isinstance(item, ImportIssue):
            yield item
            continue
        row += 1
        yield Row(row, item)
        if decoder.mended:
            decoder.mended = False
            yield mended(row, window.place())


def _values(window: _Window) -> Iterator[object]:
    inner = _LIST_KEY.match(window.text, window.start)
    if inner is not None:
        window.start = inner.end()
    yield from _entries(window) if window.skip_space() == "[" else _single_values(window)


def _single_values(window: _Window) -> Iterator[object]:
    row = 0
    while window.skip_space():
        row += 1
        value = _take(window, row)
        if isinstance(value, ImportIssue):
            yield value
            return
        inner = cast("dict[str, object]", value).get("data") if isinstance(value, dict) else None
        yield from cast("list[object]", inner) if isinstance(inner, list) else [value]


def _entries(window: _Window) -> Iterator[object]:
    window.start += 1
    if window.skip_space() == "]":
        return
    row = 0
    while True:
        row += 1
        if not window.skip_space():
            yield cut_off(row, window.place())
            return
        value = _take(window, row)
        yield value
        if isinstance(value, ImportIssue):
            return
        match window.skip_space():
            case ",":
                window.start += 1
            case "]":
                return
            case "":
                yield cut_off(row + 1, window.place())
                return
            case _:
                _refuse("expecting ',' delimiter", window.place())


def _take(window: _Window, row: int) -> object:
    begin = window.place()
    try:
        return window.value()
    except json.JSONDecodeError as error:
        if window.at_end and _is_cut_off(error):
            return cut_off(row, begin)
        _refuse(error.msg, window.place(error.pos))
    except ValueError as error:
        raise DataError(str(error), where=f"row {row}, {begin}", remedy=_REMEDY) from None


def _may_go_on(error: json.JSONDecodeError, length: int) -> bool:
    """Return whether more text could mend the error."""
    return error.msg.startswith("Unterminated string") or error.pos >= length - 12


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Return whether the text is fine but for its missing end."""
    rest = error.doc[error.pos :]
    return (
        error.msg.startswith("Unterminated string")
        or not rest.strip()
        or (rest.startswith("\\") and len(rest) < 6)
        or any(word.startswith(rest) for word in ("true", "false", "null", "NaN", "-Infinity", "-"))
    )


def _malformed(row: int, place: str, message: str) -> ImportIssue:
    return ImportIssue(row=row, field=place, reason=_words(message), remedy=_REMEDY)


def _too_long(row: int, place: str) -> ImportIssue:
    return ImportIssue(
        row=row,
        field=place,
        reason=_TOO_LONG,
        remedy="Split it, or take out what is no conversation.",
    )


def _words(message: str) -> str:
    return f"the JSON is malformed ({message[0].lower()}{message[1:]})"


def _refuse(message: str, where: str) -> NoReturn:
    raise DataError(_words(message), where=where, remedy=f"{_REMEDY} Nothing was imported.")


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
