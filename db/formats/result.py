"""What reading a file gives, and what it collects on the way."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from db.errors import DataError
from db.records import Conversation, ImportIssue, IssueOutcome

_ROWS_NAMED = 5
_NAMED = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One conversation of a file.

    Attributes:
        row: Its row in the file, from 1 (the first of several that it was made of).
        raw: That row as JSON data; a list if it was made of several.
        packed_bytes: How much of the file has been read so far, for progress.
    """

    conversation: Conversation
    row: int
    raw: object
    packed_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """The conversations of a file, all in memory.

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
    """Collects what is remarkable about the rows of one conversation, or of one tree of them.

    Attributes:
        row: The row that is being read.
        issues: What was said so far, in order, each once.
    """

    row: int = 0
    issues: dict[ImportIssue, None] = field(default_factory=dict[ImportIssue, None])

    def add(self, remark: str, where: str = "row", remedy: str = "") -> None:
        """Say what was changed or left out of the present row."""
        self._add(IssueOutcome.REPAIRED, where, remark, remedy)

    def flag(self, where: str, reason: str, remedy: str) -> None:
        """Say what deserves a look in the present row."""
        self._add(IssueOutcome.FLAGGED, where, reason, remedy)

    def skip(self, where: str, reason: str, remedy: str) -> None:
        """Say why the present row is left out while others of its conversation are not."""
        self._add(IssueOutcome.SKIPPED, where, reason, remedy)

    def merge(self, where: str, reason: str, remedy: str = "") -> None:
        """Say that the present row adds nothing to another one."""
        self._add(IssueOutcome.MERGED, where, reason, remedy)

    def _add(self, outcome: IssueOutcome, where: str, reason: str, remedy: str) -> None:
        issue = ImportIssue(
            row=self.row, field=where, reason=reason, remedy=remedy, outcome=outcome
        )
        self.issues[issue] = None


@dataclass(slots=True)
class IssueLog:
    """Gathers issues so that any number of rows gives a report that a person can read.

    Skipped rows are named one by one, everything else once for all rows with the same issue; of
    more than 2000 kinds only the number is kept.
    """

    _issues: dict[tuple[object, ...], ImportIssue] = field(
        default_factory=dict[tuple[object, ...], ImportIssue]
    )
    _last_rows: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])

    def add(self, issue: ImportIssue) -> None:
        """Take an issue into the report."""
        key: tuple[object, ...] = (issue.outcome, issue.reason)
        if issue.outcome is IssueOutcome.SKIPPED:
            key = (*key, issue.row, issue.field)
        if key not in self._issues and len(self._issues) >= _NAMED:
            key = (issue.outcome,)
            issue = replace(issue, field="row", reason="further rows of this kind")
        known = self._issues.get(key)
        if known is None:
            self._issues[key] = issue
        elif issue.row != self._last_rows[key]:
            others = known.others
            if len(others) < _ROWS_NAMED - 1:
                others = (*others, issue.row)
            self._issues[key] = replace(known, count=known.count + 1, others=others)
        self._last_rows[key] = issue.row

    def issues(self) -> tuple[ImportIssue, ...]:
        """Return the report, in the order of the first row of each issue's kind."""
        return tuple(self._issues.values())


def issue_words(issue: ImportIssue) -> str:
    """Return an issue in one line that names its rows."""
    if issue.row == 0:
        return issue.reason
    rows = [issue.row, *issue.others]
    rest = issue.count - len(rows)
    named = ", ".join(str(row) for row in rows)
    more = f" and {rest} more" if rest > 0 else ""
    return f"row{'s' if issue.count > 1 else ''} {named}{more}: {issue.reason}"


def share(rows: Iterable[object], fits: Callable[[object], bool]) -> float:
    """Return the share of rows that fit, from 0 to 1."""
    verdicts = [fits(row) for row in rows]
    return sum(verdicts) / len(verdicts) if verdicts else 0.0
