"""What an import did."""

from dataclasses import dataclass
from enum import StrEnum


class IssueOutcome(StrEnum):
    """What became of the row that an issue is about."""

    SKIPPED = "skipped"
    """It is not imported."""
    MERGED = "merged"
    """It says what another row says, and went into that one."""
    REPAIRED = "repaired"
    """It is imported, but something in it was changed or left out."""
    FLAGGED = "flagged"
    """It is imported, but something in it is not trusted (a score is left out) or deserves a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportIssue:
    """Why a row of an imported file was skipped, merged, repaired or flagged.

    Attributes:
        row: The row in the file, from 1 (a line, an entry of the list, a record); 0 is the file
            as a whole.
        field: Where in the row, like "messages[1].role".
        count: How many rows have the same issue; more than 1 only in a report.
        others: The next of those rows, the first few.
    """

    row: int
    field: str
    reason: str
    remedy: str
    outcome: IssueOutcome = IssueOutcome.SKIPPED
    count: int = 1
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did, or (dry run) would do."""

    format: str
    conversations: int
    messages: int
    scores: int
    duplicates: int
    skipped: tuple[ImportIssue, ...] = ()
    warnings: tuple[str, ...] = ()
