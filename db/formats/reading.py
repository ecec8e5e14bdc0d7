"""A file's conversations, one after another, in bounded memory."""

from collections.abc import Iterator

from db.formats.detecting import Detection
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
    content = Unpacked(source)
    for unit in gathered(open_rows(content, found.facts), format.links):
        if isinstance(unit, ImportIssue):
            yield unit
            continue
        yield from _of_unit(unit, format, rule, content)


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
