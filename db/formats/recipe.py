"""The seed recipe's format: {"turns": [{"user", "assistant", "reward"}]}."""

from collections.abc import Iterator, Sequence

from db.enums import Role
from db.formats.draft import Draft, Piece, RawScore, draft
from db.formats.fields import (
    as_list,
    as_object,
    is_object_with,
    optional_text,
    remark_others,
    required,
    required_text,
)
from db.formats.format import Format, each_row
from db.formats.result import Notes, share
from db.records import Message


def _confidence(rows: Sequence[object]) -> float:
    return share(rows, lambda row: is_object_with(row, "turns"))


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, frozenset({"turns", "system", "title"}), "", notes)
    pieces: list[Piece] = []
    for index, value in enumerate(as_list(required(data, "turns", ""), "turns")):
        path = f"turns[{index}]"
        turn = as_object(value, path)
        remark_others(turn, frozenset({"user", "assistant", "reward"}), "turns[]", notes)
        pieces.append(Piece(Message(role=Role.USER, content=required_text(turn, "user", path))))
        reply = Message(role=Role.ASSISTANT, content=required_text(turn, "assistant", path))
        reward = turn.get("reward")
        scores = (
            ()
            if reward is None  # not scored, which is not the same as 0
            else (RawScore(name="reward", value=reward, field=f"{path}.reward"),)
        )
        pieces.append(Piece(reply, scores))
    yield draft(
        pieces,
        path="turns",
        title=optional_text(data, "title", ""),
        system=optional_text(data, "system", ""),
    )


RECIPE = Format(
    name="recipe",
    title="Recipe (turns with rewards)",
    about=(
        "Turns with rewards, as in the published recipe. A reward becomes the turn's score, by the "
        'rater "imported"; without a reward, or with null, the turn is not scored. `system` and '
        "`title` may stand beside `turns`."
    ),
    example=(
        '[{"turns": [{"user": "What is the capital of France?", '
        '"assistant": "The capital of France is Paris.", "reward": 1.0}]}]\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
