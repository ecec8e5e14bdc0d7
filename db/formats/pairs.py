"""Two replies to one prompt, of which one is preferred: two conversations in one group."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from db.formats.draft import Draft, Piece, RawScore, draft, group_key
from db.formats.fields import JsonObject, optional_text
from db.formats.prompts import common_length, parse_prompt, parse_reply
from db.formats.result import Notes
from db.formats.scales import Scale, ScaleKind
from db.formats.tools import parse_tools

PREFERENCE = Scale(name="preference", kind=ScaleKind.YES_NO, to_low=0.0, to_high=1.0)
"""How it is read which of two replies was preferred."""

SIDES = ("chosen", "rejected")


def parse_pair(data: JsonObject, notes: Notes) -> Iterator[Draft]:
    """Read a row with `chosen`, `rejected` and perhaps a prompt, alone or repeated in both.

    Raises:
        RowError: naming the field.
    """
    prompt = parse_prompt(data, notes)
    sides = [parse_reply(data.get(side), side, notes) for side in SIDES]
    sides = [_without(prompt, side) for side in sides]
    shared = min(common_length(*sides), len(sides[0]) - 1, len(sides[1]) - 1)
    prompt = [*prompt, *sides[0][:shared]]
    if [piece.message for piece in sides[0]] == [piece.message for piece in sides[1]]:
        notes.flag("rejected", "both replies are the same: it was left unscored", "Check the row.")
        yield _side(data, [*prompt, *sides[0][shared:]], "")
        return
    group = group_key((piece.message for piece in prompt), parse_tools(data))
    for name, side in zip(SIDES, sides, strict=True):
        pieces = [*prompt, *side[shared:]]
        last = replace(pieces[-1], scores=(*pieces[-1].scores, _raw(data, name)))
        yield _side(data, [*pieces[:-1], last], group)


def _side(data: JsonObject, pieces: Sequence[Piece], group: str) -> Draft:
    return draft(
        pieces,
        path="chosen",
        tools=parse_tools(data),
        title=optional_text(data, "title", ""),
        group=group,
    )


def _without(prompt: Sequence[Piece], side: list[Piece]) -> list[Piece]:
    """Take the prompt off a side that repeats it."""
    said = list(prompt)
    while said:
        if len(side) > len(said) and common_length(said, side) == len(said):
            return side[len(said) :]
        if said[0].message.role.value != "system":
            break
        said = said[1:]  # the system prompt stands apart, the rest is repeated
    return side


def _raw(data: JsonObject, side: str) -> RawScore:
    """Return a side's own score if the row has one, else whether it was preferred."""
    own = f"score_{side}"
    if data.get(own) is not None:
        return RawScore(name="score", value=data[own], field=own, doubt=_doubt(data))
    return RawScore(name=PREFERENCE.name, value=side == "chosen", field=side)


def _doubt(data: JsonObject) -> str:
    chosen, rejected = data.get("score_chosen"), data.get("score_rejected")
    if isinstance(chosen, int | float) and isinstance(rejected, int | float) and chosen < rejected:
        return "the rejected reply has the higher score"
    return ""
