"""Instructions with one output, perhaps after a history of questions and answers."""

from collections.abc import Iterator, Sequence
from typing import cast

from db.enums import Role
from db.formats.draft import Draft, Piece, draft, short_score
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    is_object_with,
    optional_text,
    remark_others,
    required_text,
)
from db.formats.format import Format, each_row
from db.formats.result import Notes, RowError, share
from db.records import Message

_KEYS = frozenset(
    {"instruction", "input", "output", "system", "history", "title", "id", "score", "text"}
)


def _confidence(rows: Sequence[object]) -> float:
    return share(rows, _fits)


def _fits(row: object) -> bool:
    return is_object_with(row, "instruction", "output") and isinstance(
        cast(JsonObject, row)["output"], str
    )


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _KEYS, "", notes)
    pieces: list[Piece] = []
    for index, entry in enumerate(as_list(data.get("history") or [], "history")):
        pieces += _exchange(entry, f"history[{index}]")
    instruction = required_text(data, "instruction", "")
    given = optional_text(data, "input", "")
    question = "\n\n".join(text for text in (instruction, given) if text)
    pieces.append(Piece(Message(role=Role.USER, content=question)))
    reply = Message(role=Role.ASSISTANT, content=required_text(data, "output", ""))
    pieces.append(Piece(reply, short_score(data, reply.role, "")))
    yield draft(
        pieces,
        path="output",
        system=optional_text(data, "system", ""),
        title=optional_text(data, "title", ""),
    )


def _exchange(entry: object, path: str) -> list[Piece]:
    pair = as_list(entry, path)
    if len(pair) != 2:
        raise RowError(
            f"there are {len(pair)} texts instead of a question and an answer",
            where=path,
            remedy='Write ["question", "answer"].',
        )
    return [
        Piece(Message(role=Role.USER, content=as_text(pair[0], f"{path}[0]"))),
        Piece(Message(role=Role.ASSISTANT, content=as_text(pair[1], f"{path}[1]"))),
    ]


ALPACA = Format(
    name="alpaca",
    title="Alpaca instructions",
    about=(
        "`instruction` and `output`. `input` is put under the instruction after an empty line, "
        "`history` (questions and answers) before it; `system` is the system prompt."
    ),
    example=(
        '[{"instruction": "Translate into French.", "input": "Good day", "output": "Bonjour", '
        '"history": [["Hello", "Hi!"]]}]\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
