"""What parsing a file gives, and what it collects on the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from db.errors import DataError
from db.records import Conversation, ImportIssue

_ROWS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """The conversations of a file.

    Attributes:
        format: Name of the format it was read as.
        conversations: What could be read.
        rows: The row of each of them in the file, from 1 (a line, or an entry of the list).
        skipped: The rows that could not be read, and why.
        warnings: What was left out or repaired, and what cannot be used as it is.
    """

    format: str
    conversations: tuple[Conversation, ...]
    rows: tuple[int, ...]
    skipped: tuple[ImportIssue, ...]
    warnings: tuple[str, ...]


class RowError(DataError):
    """A row cannot be read; `where` is its field. The other rows are read all the same."""


@dataclass(slots=True)
class Notes:
    """Collects remarks while rows are parsed, so that each is reported once for all its rows."""

    row: int = 0
    _rows_by_remark: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def add(self, remark: str) -> None:
        """Remark something about the present row."""
        rows = self._rows_by_remark.setdefault(remark, [])
        if not rows or rows[-1] != self.row:
            rows.append(self.row)

    def forget_row(self) -> None:
        """Take back what was remarked about the present row, because it is skipped."""
        for rows in self._rows_by_remark.values():
            if rows and rows[-1] == self.row:
                rows.pop()

    def lines(self) -> Iterator[str]:
        """Yield one line for each remark, naming its rows."""
        for remark, rows in self._rows_by_remark.items():
            if rows:
                yield f"{_name_rows(rows)}: {remark}"


def _name_rows(rows: list[int]) -> str:
    named = ", ".join(str(row) for row in rows[:_ROWS_NAMED])
    rest = len(rows) - _ROWS_NAMED
    return f"row{'s' if len(rows) > 1 else ''} {named}" + (f" and {rest} more" if rest > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One conversation format.

    Attributes:
        name: What people call it on the command line.
        recognises: Whether a row looks as if it were of this format.
        parse_row: Turns a row into a conversation; raises RowError.
        write_row: Turns a conversation into one line of JSON; None if the format is only read.
    """

    name: str
    recognises: Callable[[object], bool]
    parse_row: Callable[[object, Notes], Conversation]
    write_row: Callable[[Conversation], str] | None = None
