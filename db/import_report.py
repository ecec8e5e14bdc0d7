"""What an import has to tell: counts that grow with every conversation, and a report at the end."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from db.commands.adding import AddedConversations
from db.commands.preparing import Prepared
from db.formats import IssueLog, issue_words
from db.records import ImportIssue, ImportReport, IssueOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What reading files had to tell, before the database was asked.

    Attributes:
        format: Name of the format; of several, with commas between.
        issues: What became of rows.
        mapped: Which scores were mapped, in words.
    """

    format: str
    issues: tuple[ImportIssue, ...]
    mapped: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return what `to_json` gave."""
        return cls(
            format=data["format"],
            issues=tuple(ImportIssue.from_json(entry) for entry in data["issues"]),
            mapped=tuple(data["mapped"]),
        )


@dataclass(slots=True)
class Tally:
    """Counts while conversations are added."""

    conversations: int = 0
    messages: int = 0
    scores: int = 0
    duplicates: int = 0
    merged_scores: int = 0
    kept_scores: int = 0
    logs: dict[str, IssueLog] = field(default_factory=dict[str, IssueLog])

    def count(self, added: AddedConversations) -> None:
        """Take in what adding some conversations did."""
        self.conversations += len(added.fresh)
        self.messages += sum(len(c.messages) for c in added.fresh)
        self.scores += sum(len(c.scores) for c in added.fresh) + len(added.merged.new)
        self.duplicates += len(added.there) + len(added.repeated)
        self.merged_scores += len(added.merged.new)
        self.kept_scores += added.merged.kept
        self._note(added.there, "the same conversation is in the database already")
        self._note(added.repeated, "the same conversation stands in a row before it")

    def _note(self, duplicates: Iterable[Prepared], reason: str) -> None:
        for duplicate in duplicates:
            self.logs.setdefault(duplicate.file, IssueLog()).add(
                ImportIssue(
                    row=duplicate.row,
                    field="messages",
                    reason=reason,
                    remedy="Nothing is to be done: it is kept once, with the scores of both.",
                    outcome=IssueOutcome.MERGED,
                )
            )

    def report(self, reading: Reading) -> ImportReport:
        """Return what there is to tell about reading and adding."""
        merged = [replace(i, file=file) for file, log in self.logs.items() for i in log.issues()]
        issues = (*reading.issues, *merged)
        others = tuple(i for i in issues if i.outcome is not IssueOutcome.SKIPPED)
        return ImportReport(
            format=reading.format,
            conversations=self.conversations,
            messages=self.messages,
            scores=self.scores,
            duplicates=self.duplicates,
            skipped=tuple(i for i in issues if i.outcome is IssueOutcome.SKIPPED),
            issues=others,
            warnings=(*(_words(i) for i in others), *reading.mapped, *_score_words(self)),
        )


def _words(issue: ImportIssue) -> str:
    return f"{issue.file}, {issue_words(issue)}" if issue.file else issue_words(issue)


def _score_words(tally: Tally) -> list[str]:
    lines: list[str] = []
    if tally.merged_scores:
        lines.append(
            f"{_count(tally.merged_scores, 'score')} added to conversations that are already there"
        )
    if tally.kept_scores:
        lines.append(
            f"{_count(tally.kept_scores, 'score')} left out: the same rater has given that turn "
            "another score, which stays"
        )
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
