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
from db.records import ImportIssue

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
            yield from notes.issues
            notes.issues.clear()
            yield Parsed(
                conversation=conversation,
                row=notes.row,
                raw=raw,
                packed_bytes=content.packed_bytes,
            )
    except RowError as error:
        yield ImportIssue(row=notes.row, field=error.where, reason=error.what, remedy=error.remedy)
        return
    yield from notes.issues
