"""Imports: which files, read how, what became of each row, and what taking one back means."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from db.enums import ImportState


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
        file: Name of the file, in a report on several.
    """

    row: int
    field: str
    reason: str
    remedy: str
    outcome: IssueOutcome = IssueOutcome.SKIPPED
    count: int = 1
    others: tuple[int, ...] = ()
    file: str = ""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the issue that `dataclasses.asdict` and JSON made this of."""
        fields: dict[str, Any] = {**data}
        fields["outcome"] = IssueOutcome(data["outcome"])
        fields["others"] = tuple(data["others"])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did, or (dry run) would do.

    Attributes:
        format: Name of the format; of several, with commas between.
        conversations: New ones.
        messages: Those of the new conversations.
        scores: Stored ones, outcomes included, also those added to conversations that were there.
        duplicates: Conversations left out because the same words are there already.
        skipped: Rows that are left out, and why.
        issues: What was merged, repaired or flagged.
        warnings: `issues` in words, and what became of scores.
    """

    format: str
    conversations: int
    messages: int
    scores: int
    duplicates: int
    skipped: tuple[ImportIssue, ...] = ()
    issues: tuple[ImportIssue, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the report that `to_json` gave."""
        fields: dict[str, Any] = {**data, "warnings": tuple(data["warnings"])}
        for key in ("skipped", "issues"):
            fields[key] = tuple(ImportIssue.from_json(entry) for entry in data[key])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSet:
    """A data set of the Hugging Face Hub.

    Attributes:
        name: Like "HuggingFaceH4/ultrafeedback_binarized".
        split: Which part of it.
        config: Which of its configurations, None for the only or default one.
        limit: How many rows at most, None for all.
    """

    name: str
    split: str = "train"
    config: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFile:
    """One file of an import, and how it is read.

    Attributes:
        name: What the person calls it.
        format: Name of the format, "auto" to recognise it.
        rule: `ScoreRule.to_json()`; None takes the suggested rule.
        encoding: Name of the text's encoding, "auto" to recognise it.
        member: Its name in the zip archive that was uploaded, empty if it was no part of one.
        kept_as: Number under which its bytes (or that archive's) lie, None for its own place among
            the import's files.
        hub: Where its rows are fetched from, None if it was a file to begin with.
    """

    name: str
    format: str = "auto"
    encoding: str = "auto"
    member: str = ""
    kept_as: int | None = None
    rule: dict[str, Any] | None = None
    hub: HubSet | None = None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the file that `dataclasses.asdict` and JSON made this of."""
        fields: dict[str, Any] = {**data}
        if fields["hub"] is not None:
            fields["hub"] = HubSet(**fields["hub"])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An import, from the moment its files are here until it is done, or taken back again.

    Attributes:
        user: Name of who imports, empty if they are gone.
        report: What the check or the import found, None before.
        process: What tells the process that checks or imports from all others, empty if none does.
        progress: Share of the present step that is done, from 0 to 1.
        message: What is being done, in words.
        error_text: Why it failed.
        changed_at: When its state changed last.
    """

    id: int
    state: ImportState
    user: str
    files: tuple[ImportFile, ...]
    report: ImportReport | None
    process: str
    progress: float
    message: str
    error_text: str
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoEffects:
    """What undoing an import takes away.

    Attributes:
        conversations: Those that it brought and that are still there.
        edited: How many of them somebody has edited since.
        scores_since: Scores that people have given them since, by the rater's name.
        merged_scores: Scores that it added to other conversations and that go again.
        changed_scores: Scores of that kind that stay, because their raters have changed them since.
    """

    conversations: int
    edited: int
    scores_since: tuple[tuple[str, int], ...]
    merged_scores: int
    changed_scores: int
