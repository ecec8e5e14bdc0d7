"""Helpfulness and harmlessness data: two transcripts, or message lists, that end differently."""

from collections.abc import Iterator, Sequence
from typing import cast

from db.formats.draft import Draft
from db.formats.fields import JsonObject, as_object, is_object_with, remark_others, unfold
from db.formats.format import Format, each_row
from db.formats.pairs import PREFERENCE, SIDES, parse_pair
from db.formats.prompts import is_transcript
from db.formats.result import Notes, share

_KEYS = frozenset(
    {
        *("prompt", "system", "tools", "title", "id"),
        *("chosen", "rejected", "score_chosen", "score_rejected"),
    }
)


def _confidence(rows: Sequence[object]) -> float:
    return share(rows, _fits)


def _fits(row: object) -> bool:
    if not is_object_with(row, *SIDES):
        return False
    data = cast(JsonObject, row)
    return all(is_transcript(data[side]) or _is_long(data[side]) for side in SIDES)


def _is_long(value: object) -> bool:
    """Return whether this is a list of more messages than one reply."""
    entries = unfold(value)
    return isinstance(entries, list) and len(cast("list[object]", entries)) > 1


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _KEYS, "", notes)
    yield from parse_pair(data, notes)


HH = Format(
    name="hh",
    title="Transcripts, chosen and rejected (HH)",
    about=(
        '`chosen` and `rejected` are whole conversations: transcripts split at "\\n\\nHuman:" and '
        '"\\n\\nAssistant:", or lists of messages that may repeat the `prompt`. A row becomes two '
        "conversations in one group; their last turns are scored 1 and 0."
    ),
    example=(
        r'{"chosen": "\n\nHuman: Hi\n\nAssistant: Hello! What do you need?", '
        r'"rejected": "\n\nHuman: Hi\n\nAssistant: What?"}'
        "\n"
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
    scales=(PREFERENCE,),
)
