"""Replies graded for five qualities, the turns before them embedded in the prompt."""

import re
from collections.abc import Iterator, Sequence
from typing import cast

from db.enums import Role
from db.formats.draft import Draft, Piece, RawScore, draft
from db.formats.fields import (
    JsonObject,
    as_object,
    is_object_with,
    optional_text,
    remark_others,
    required_text,
)
from db.formats.format import Format, each_row
from db.formats.messages import ROLE_ALIASES
from db.formats.result import Notes, RowError, share
from db.formats.scales import Scale
from db.records import Message

_QUALITIES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
_KEYS = frozenset({"prompt", "response", "system", "title", "id", *_QUALITIES})
_MARK = re.compile(r"\n?<extra_id_[01]>([A-Za-z]+)\n")


def _confidence(rows: Sequence[object]) -> float:
    return share(rows, _fits)


def _fits(row: object) -> bool:
    if not is_object_with(row, "prompt", "response"):
        return False
    return any(quality in cast(JsonObject, row) for quality in _QUALITIES)


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _KEYS, "", notes)
    pieces = _parse_prompt(required_text(data, "prompt", ""))
    reply = Message(role=Role.ASSISTANT, content=required_text(data, "response", ""))
    raws = tuple(RawScore(name=q, value=data[q], field=q) for q in _QUALITIES if q in data)
    yield draft(
        [*pieces, Piece(reply, raws)],
        path="prompt",
        system=optional_text(data, "system", ""),
        title=optional_text(data, "title", ""),
    )


def _parse_prompt(prompt: str) -> list[Piece]:
    """Split at the marks of turns; what stands before the first is the user's."""
    parts = _MARK.split(prompt)
    said = [("user", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    if len(said) > 1 and not said[0][1].strip():
        said = said[1:]
    if said[-1] == ("Assistant", ""):
        said = said[:-1]  # it only asks for the response
    pieces: list[Piece] = []
    for name, text in said:
        role = ROLE_ALIASES.get(name.lower())
        if role is None:
            raise RowError(
                f"the role {name[:40]!r} is unknown",
                where="prompt",
                remedy=f"Use one of: {', '.join(ROLE_ALIASES)}.",
            )
        pieces.append(Piece(Message(role=role, content=text)))
    return pieces


def _scale(name: str) -> Scale:
    used = name == "helpfulness"  # complexity and verbosity are no merit; the others are at choice
    return Scale(name=name, low=0.0, high=4.0, to_low=0.0, to_high=1.0, used=used)


HELPSTEER = Format(
    name="helpsteer",
    title="HelpSteer grades",
    about=(
        "`prompt`, `response` and integers from 0 to 4: helpfulness, correctness, coherence, "
        "complexity, verbosity. Helpfulness becomes the score of the response; the others can be "
        "switched on in the rule, their mean counts then. A prompt of several turns has "
        r"`<extra_id_1>User\n` and `<extra_id_1>Assistant\n` before each turn but the first."
    ),
    example=(
        '{"prompt": "Name a colour.", "response": "Blue.", "helpfulness": 3, "correctness": 4, '
        '"coherence": 4, "complexity": 1, "verbosity": 1}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
    scales=tuple(_scale(name) for name in _QUALITIES),
)
