"""One row of a file, and what reading rows may find wrong with it."""

from dataclasses import dataclass
from enum import StrEnum

from db.records import ImportIssue, IssueOutcome


class FileKind(StrEnum):
    """How rows are kept in a file."""

    JSON = "json"
    JSON_LINES = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands in the file.

    Attributes:
        number: From 1: its place among the rows.
        value: What it holds, as JSON data.
    """

    number: int
    value: object


CUT_OFF_REMEDY = "Fetch the file again if the end is missing; the rows before it are read."


def cut_off(row: int, place: str) -> ImportIssue:
    """Return what to say of a row that the end of the file cuts in two."""
    return ImportIssue(
        row=row, field=place, reason="the file ends in the middle of it", remedy=CUT_OFF_REMEDY
    )


def mended(row: int, place: str) -> ImportIssue:
    """Return what to say of text that is not UTF-8 in a file that is."""
    return ImportIssue(
        row=row,
        field=place,
        reason="it is not UTF-8 and was read as Windows-1252",
        remedy="Check its accents and quotation marks.",
        outcome=IssueOutcome.REPAIRED,
    )
