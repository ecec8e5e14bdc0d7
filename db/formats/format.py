"""What a conversation format is: how it is recognised and how its rows are read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from db.formats.draft import Draft
from db.formats.fields import MAX_DEPTH
from db.formats.result import Notes
from db.formats.rows import Row
from db.formats.scales import Scale

Links = Callable[[object], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One conversation format.

    Attributes:
        name: What people call it on the command line.
        title: What it is, in a few words.
        about: How it is read, for people (Markdown).
        example: A small file of this format.
        confidence: How well rows fit, from 0 to 1.
        parse: Makes drafts of the rows of one conversation or tree (mostly of one row); raises
            RowError.
        links: Names that a row shares with the others of its conversation or tree; none if it
            stands alone. None if every row of the format does.
        scales: How its scores are read unless the person says otherwise; for names that are not
            here a scale is guessed from the values.
        max_depth: How deep a row may be nested.
    """

    name: str
    title: str
    about: str
    example: str
    confidence: Callable[[Sequence[object]], float]
    parse: Callable[[Sequence[Row], Notes], Iterable[Draft]]
    links: Links | None = None
    scales: tuple[Scale, ...] = ()
    max_depth: int = MAX_DEPTH


def each_row(
    parse_row: Callable[[object, Notes], Iterable[Draft]],
) -> Callable[[Sequence[Row], Notes], Iterable[Draft]]:
    """Return the `parse` of a format in which every row stands alone."""

    def parse(rows: Sequence[Row], notes: Notes) -> Iterable[Draft]:
        for row in rows:
            notes.row = row.number
            yield from parse_row(row.value, notes)

    return parse
