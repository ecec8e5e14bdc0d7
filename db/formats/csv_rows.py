"""Rows of CSV files: delimiter and header from the content, cells as text."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from db.errors import DataError
from db.formats.encoding import Decoder
from db.formats.rows import Row, cut_off, mended
from db.formats.source import LARGEST_ROW_BYTES
from db.records import ImportIssue, IssueOutcome

_NO_CELLS: list[str] = []
_DELIMITERS = (",", ";", "\t", "|")
_GUARDED = re.compile("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_DANGEROUS = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def guard(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe goes before it."""
    return f"'{text}" if _DANGEROUS.match(text) else text


def unguard(text: str) -> str:
    """Take the apostrophe of `guard` away again."""
    return text[1:] if _GUARDED.match(text) else text


def delimiter_of(head: str) -> str | None:
    """Return what separates the cells of the header line, None if this is no CSV.

    A header has at least two names that are all different and none of which is empty.
    """
    named = re.match(r"sep=(.)\r?\n", head)
    if named:
        return named.group(1)
    best, cells_found = None, 1
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader(iter(_Lines([head])), delimiter=delimiter), _NO_CELLS)
        except csv.Error:
            continue
        names = [cell.strip().lower() for cell in cells]
        usable = all(names) and len(set(names)) == len(names)
        if usable and len(cells) > cells_found and all(len(name) < 80 for name in names):
            best, cells_found = delimiter, len(cells)
    return best


def csv_rows(
    chunks: Iterable[bytes], decoder: Decoder, delimiter: str
) -> Iterator[Row | ImportIssue]:
    """Yield a row for each record; empty cells are null, names of columns stripped.

    A record that breaks the rules of quoting is passed over with an issue, like one that has more
    cells than the header.

    Raises:
        DataError: if a column has no name or the same as another one.
    """
    csv.field_size_limit(LARGEST_ROW_BYTES)
    lines = _Lines(decoder.texts(chunks))
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    names = _header(reader, delimiter)
    number = 0
    while True:
        place = f"line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            if "unexpected end of data" in str(error):
                yield cut_off(number, place)
                return
            yield ImportIssue(
                row=number,
                field=place,
                reason=f"the record breaks the rules of CSV ({error})",
                remedy='Put the cell in quotation marks and double those inside it: "say ""hi""".',
            )
            continue
        if not any(cells):
            continue
        number += 1
        if len(cells) > len(names):
            yield _too_many(number, place, len(cells), len(names))
            continue
        if len(cells) < len(names) and lines.is_cut_off:
            yield cut_off(number, place)
            continue
        yield Row(number, dict(zip_longest(names, [unguard(c) if c else None for c in cells])))
        if decoder.mended:
            decoder.mended = False
            yield mended(number, place)


def _header(reader: Iterator[list[str]], delimiter: str) -> list[str]:
    try:
        cells = next(reader, _NO_CELLS)
        if cells and cells[0].lower().startswith("sep="):
            cells = next(reader, _NO_CELLS)
    except csv.Error as error:
        raise DataError(
            f"the header breaks the rules of CSV ({error})",
            where="line 1",
            remedy="Its first line names the columns.",
        ) from None
    names = [unguard(cell.strip()) for cell in cells]
    if not all(names) or len(set(names)) < len(names):
        raise DataError(
            "a column has no name, or the same name as another one",
            where="line 1",
            remedy="The first line names each column once.",
        )
    return names


def _too_many(row: int, place: str, cells: int, names: int) -> ImportIssue:
    return ImportIssue(
        row=row,
        field=place,
        reason=f"it has {cells} cells, but the header names {names} columns",
        remedy="Put cells that hold the delimiter or a line break in quotation marks.",
        outcome=IssueOutcome.SKIPPED,
    )


@dataclass(slots=True)
class _Lines:
    """The lines of a text (ended by LF, CR LF or CR), whatever the pieces it arrives in.

    Attributes:
        is_cut_off: Set once the last line has turned out to have no end.
    """

    texts: Iterable[str]
    is_cut_off: bool = False

    def __iter__(self) -> Iterator[str]:
        rest = ""
        for text in self.texts:
            rest += text
            if len(rest) > LARGEST_ROW_BYTES + len(text):
                raise DataError(
                    f"a line is longer than {LARGEST_ROW_BYTES // 2**20} MB",
                    where="file",
                    remedy="This may be no CSV. Split the line, or choose another file.",
                )
            if "\n" not in rest and "\r" not in rest:
                continue
            lines = list(io.StringIO(rest, newline=""))
            # a lone CR at the end may be half of a CR LF
            rest = "" if lines[-1].endswith("\n") else lines.pop()
            yield from lines
        self.is_cut_off = bool(rest) and not rest.endswith("\r")
        if rest:
            yield rest
