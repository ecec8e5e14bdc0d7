"""What kind of file this is, and its rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from db.errors import DataError
from db.formats.csv_rows import csv_rows, delimiter_of
from db.formats.encoding import UTF8, Decoder, Encoding, chosen, judge
from db.formats.encoding_names import encoding_title
from db.formats.fields import is_object_with
from db.formats.json_document import json_document
from db.formats.json_lines import is_lines, json_lines
from db.formats.messages import MESSAGE_KEYS
from db.formats.parquet_rows import MARK, parquet_rows
from db.formats.rows import FileKind, Row
from db.formats.source import Source, Unpacked
from db.records import ImportIssue, IssueOutcome

_OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive within another file: unpack it, and import what comes out",
    b"%PDF": "a PDF document",
    b"SQLite format 3": "a SQLite database",
    b"\x89PNG": "a picture",
    b"\x28\xb5\x2f\xfd": "a zstandard archive: unpack it first",
    b"BZh": "a bzip2 archive: unpack it first",
    b"\xfd7zXZ": "an xz archive: unpack it first",
    b"ARROW1": "an Arrow file: export it as Parquet",
}
_HEAD_BYTES = 2**20
MOST_BLANK_BYTES = 16 * 2**20  # a longer stretch of nothing but blanks is refused
_BLANKS = b" \t\r\n\x00"  # with the other half of each in UTF-16
_LONE_MESSAGE_KEYS = MESSAGE_KEYS | {"from", "value", "name"}
_MOST_LONE_MESSAGES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """How a file is read, before anything is known of what it says.

    Attributes:
        delimiter: What separates the cells of a CSV file.
    """

    kind: FileKind
    is_gzip: bool
    encoding: Encoding
    delimiter: str = ","


def look(source: Source, encoding_name: str | None = None) -> FileFacts:
    """Judge a file by its first megabyte.

    Args:
        source: The file.
        encoding_name: The encoding that the person chose, None to recognise it.

    Raises:
        DataError: if it is empty, or of a kind that holds no rows.
    """
    content = Unpacked(source)
    head = b""
    whole = True
    for chunk in content.chunks():
        head += chunk
        if len(head) >= _HEAD_BYTES:
            whole = False
            break
    if head.startswith(MARK):
        return FileFacts(kind=FileKind.PARQUET, is_gzip=content.is_gzip, encoding=UTF8)
    for mark, kind in _OTHER_KINDS.items():
        if head.startswith(mark):
            raise DataError(
                f"this is {kind}", where="file", remedy="Import JSON, JSON lines, CSV or Parquet."
            )
    if not head and content.cut_off:
        raise DataError(
            "the archive is cut off before its first row", where="file", remedy="Fetch it again."
        )
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        _refuse_empty()
    encoding = judge(head) if encoding_name is None else chosen(head, encoding_name)
    text = "".join(Decoder(encoding).texts([head]))
    if not text.strip():
        _refuse_empty()
    kind, delimiter = _kind(text.lstrip(), whole=whole)
    return FileFacts(kind=kind, is_gzip=content.is_gzip, encoding=encoding, delimiter=delimiter)


def _kind(text: str, *, whole: bool) -> tuple[FileKind, str]:
    if text[0] in "[{":
        lines = is_lines(text, complete=whole)
        return (FileKind.JSON_LINES if lines else FileKind.JSON), ","
    delimiter = delimiter_of(text)
    if delimiter is None:
        raise DataError(
            f"this is neither JSON nor a CSV file: it begins with {text.strip()[:30]!r}",
            where="line 1",
            remedy="JSON begins with [ or {; the first line of a CSV file names its columns.",
        )
    return FileKind.CSV, delimiter


def _refuse_empty() -> None:
    raise DataError(
        "the file is empty", where="file", remedy="Choose a file that holds conversations."
    )


def open_rows(content: Unpacked, facts: FileFacts) -> Iterator[Row | ImportIssue]:
    """Yield a file's rows, and what is wrong with those that cannot be read.

    Raises:
        DataError: if the file is malformed in a way that leaves the other rows in doubt.
    """
    decoder = Decoder(facts.encoding)
    match facts.kind:
        case FileKind.PARQUET:
            yield from parquet_rows(content)
        case FileKind.CSV:
            yield from csv_rows(_filled(content), decoder, facts.delimiter)
        case FileKind.JSON_LINES:
            yield from json_lines(_filled(content), decoder)
        case FileKind.JSON:
            yield from _lone_messages(json_document(_filled(content), decoder))
    if decoder.misfits:
        yield _misfits(facts.encoding)
    if content.cut_off:
        yield ImportIssue(
            row=0,
            field="file",
            reason="the gzip archive ends in the middle: only the rows before were read",
            remedy="Fetch the file again; importing it then adds what is missing.",
            outcome=IssueOutcome.REPAIRED,
        )


def _filled(content: Unpacked) -> Iterator[bytes]:
    """Yield the content of a text, which says something now and then.

    Raises:
        DataError: if it is blank over many megabytes: somebody would wait for nothing.
    """
    blank_bytes = 0
    for chunk in content.chunks():
        blank_bytes = 0 if chunk.strip(_BLANKS) else blank_bytes + len(chunk)
        if blank_bytes > MOST_BLANK_BYTES:
            raise DataError(
                f"more than {MOST_BLANK_BYTES // 2**20} MB in one piece are nothing but blanks or empty "
                "lines, which no conversations are",
                where=content.source.name,
                remedy="Take the empty part out in an editor, or fetch the file again.",
            )
        yield chunk


def _misfits(encoding: Encoding) -> ImportIssue:
    return ImportIssue(
        row=0,
        field="file",
        reason=f"some of its bytes are no {encoding_title(encoding.name)} and were read as "
        "Windows-1252",
        remedy="Choose another encoding, or save the file as UTF-8.",
        outcome=IssueOutcome.FLAGGED,
    )


def _lone_messages(rows: Iterator[Row | ImportIssue]) -> Iterator[Row | ImportIssue]:
    """Make one row of a list whose entries are nothing but messages: it is one conversation."""
    waiting: list[Row] = []
    for row in rows:
        if isinstance(row, Row) and _is_lone_message(row.value):
            waiting.append(row)
            if len(waiting) <= _MOST_LONE_MESSAGES:
                continue
        yield from waiting
        if not (waiting and row is waiting[-1]):
            yield row
        yield from rows
        return
    if waiting:
        yield Row(1, [row.value for row in waiting])


def _is_lone_message(entry: object) -> bool:
    if not (is_object_with(entry, "role") or is_object_with(entry, "from", "value")):
        return False
    return cast("dict[str, object]", entry).keys() <= _LONE_MESSAGE_KEYS
