"""What an import did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportIssue:
    """Why a row of an imported file was skipped or repaired."""

    row: int
    field: str
    reason: str
    remedy: str


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
