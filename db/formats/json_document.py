"""Rows of a JSON document, one after another, in bounded memory."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn, cast

from db.errors import DataError
from db.formats.encoding import Decoder
from db.formats.json_values import (
    REMEDY,
    TOO_DEEP,
    TOO_LONG,
    decoder,
    is_cut_off,
    malformed_words,
)
from db.formats.rows import Row, cut_off, mended
from db.formats.source import LARGEST_ROW_BYTES
from db.records import ImportIssue

_SAID = re.compile(r"[^ \t\r\n]")
_LIST_KEY = re.compile(r'\{\s*"data"\s*:\s*(?=\[)')


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
            said = _SAID.search(self.text, self.start)
            if said is not None:
                self.start = said.start()
                return said[0]
            self.start = len(self.text)
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
                value, end = decoder.raw_decode(self.text, self.start)
            except RecursionError:
                raise ValueError(TOO_DEEP) from None
            except json.JSONDecodeError as error:
                if self.at_end or not _may_go_on(error, len(self.text)):
                    raise
                if len(self.text) - self.start > LARGEST_ROW_BYTES:
                    raise ValueError(TOO_LONG) from None
            else:
                if end - self.start > LARGEST_ROW_BYTES:
                    raise ValueError(TOO_LONG)
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


def json_document(chunks: Iterable[bytes], text: Decoder) -> Iterator[Row | ImportIssue]:
    """Yield the rows of a JSON document: the entries of its list, or the one object.

    {"data": [...]} gives that list's entries. Several values one after another are as many rows.
    The entries before the place where a file is cut off are read.

    Raises:
        DataError: if the document is malformed, naming line and column.
    """
    window = _Window(text.texts(chunks))
    window.grow()
    window.skip_space()
    row = 0
    for item in _values(window):
        if isinstance(item, ImportIssue):
            yield item
            continue
        row += 1
        yield Row(row, item)
        if text.mended:
            text.mended = False
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
    try:
        return window.value()
    except json.JSONDecodeError as error:
        if window.at_end and is_cut_off(error):
            return cut_off(row, window.place())
        _refuse(error.msg, window.place(error.pos))
    except ValueError as error:
        raise DataError(str(error), where=f"row {row}, {window.place()}", remedy=REMEDY) from None


def _may_go_on(error: json.JSONDecodeError, length: int) -> bool:
    """Return whether more text could mend the error."""
    return error.msg.startswith("Unterminated string") or error.pos >= length - 12


def _refuse(message: str, where: str) -> NoReturn:
    raise DataError(malformed_words(message), where=where, remedy=f"{REMEDY} Nothing was imported.")
