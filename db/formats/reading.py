"""A file's conversations, one after another, in bounded memory."""

from collections.abc import Iterator, Sequence

from db.errors import DataError
from db.formats.detecting import Detection, SeenScores
from db.formats.doubts import doubt_issue
from db.formats.draft import scored
from db.formats.fields import check_values
from db.formats.format import Format
from db.formats.gather import MOST_ROWS, gathered
from db.formats.opening import open_rows
from db.formats.result import Notes, Parsed, RowError
from db.formats.rows import Row
from db.formats.scales import ScoreRule
from db.formats.source import Source, Unpacked
from db.records import Conversation, ImportIssue

NOTHING_TO_SCORE = "there is no assistant turn, so there is nothing to score"
MOST_IN_VAIN = 100_000
"""So many rows without a conversation among them, and the file is given up."""


def conversations_of(
    source: Source, found: Detection, format: Format, rule: ScoreRule
) -> Iterator[Parsed | ImportIssue]:
    """Yield each conversation of a file, and an issue for all that is remarkable about its rows.

    Raises:
        DataError: if the file turns out to be damaged or malformed in a way that leaves the other
            rows in doubt.
    """
    yield from found.issues
    rule = rule.with_defaults(format.scales)
    yield from _doubts(found.scores, rule)
    content = Unpacked(source)
    in_vain: int | None = 0  # rows before the first conversation
    for unit in gathered(open_rows(content, found.facts), format.links):
        items = [unit] if isinstance(unit, ImportIssue) else _of_unit(unit, format, rule, content)
        for item in items:
            if isinstance(item, Parsed):
                in_vain = None
            yield item
        if in_vain is not None:
            in_vain += 1
            if in_vain > MOST_IN_VAIN:
                raise _in_vain(format)


def _in_vain(format: Format) -> DataError:
    return DataError(
        f"none of its first {MOST_IN_VAIN:,} rows can be read as {format.title}",
        where="file",
        remedy="Choose another format, or take out the rows that are no conversations.",
    )


def _doubts(seen: Sequence[SeenScores], rule: ScoreRule) -> Iterator[ImportIssue]:
    """Yield what is suspicious about whole kinds of scores."""
    for scores in seen:
        if scores.doubt is not None:
            issue = doubt_issue(rule.scale(scores.scale.name) or scores.scale, scores.doubt)
            if issue is not None:
                yield issue


def _of_unit(
    unit: list[Row], format: Format, rule: ScoreRule, content: Unpacked
) -> Iterator[Parsed | ImportIssue]:
    notes = Notes(row=unit[0].number)
    raw = unit[0].value if len(unit) == 1 else [row.value for row in unit]
    try:
        parsed = list(_parsed(unit, format, rule, notes))
    except RowError as error:
        rest = len(unit) - 1
        also = f" ({rest} linked row{'s' if rest > 1 else ''} left out with it)" if rest else ""
        yield ImportIssue(
            row=notes.row, field=error.where, reason=f"{error.what}{also}", remedy=error.remedy
        )
        return
    yield from notes.issues
    for row, conversation in parsed:
        yield Parsed(conversation=conversation, row=row, raw=raw, packed_bytes=content.packed_bytes)


def _parsed(
    unit: list[Row], format: Format, rule: ScoreRule, notes: Notes
) -> Iterator[tuple[int, Conversation]]:
    """Yield the conversations of linked rows, each with its first row.

    Raises:
        RowError: if one of them cannot be read; then none should be kept.
    """
    if len(unit) > MOST_ROWS:
        raise RowError(
            f"more than {MOST_ROWS:,} rows are linked with each other",
            where="row",
            remedy="Check the column that says which conversation a row belongs to.",
        )
    for row in unit:
        notes.row = row.number
        check_values(row.value, notes, format.max_depth)
    notes.row = unit[0].number
    for draft in format.parse(unit, notes):
        conversation = scored(draft, rule, notes)
        if not conversation.assistant_messages:
            notes.flag("row", NOTHING_TO_SCORE, "It can still be kept, or continued in a chat.")
        yield notes.row, conversation
