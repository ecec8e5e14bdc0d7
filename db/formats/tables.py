"""Tables of conversations: one row a turn, or one row a question with its answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from db.formats.draft import Draft, Piece, RawScore, draft
from db.formats.fields import JsonObject, as_object, as_text, remark_others
from db.formats.format import Format
from db.formats.messages import make_message, parse_message
from db.formats.result import Notes, RowError, share
from db.formats.rows import Row
from db.formats.trees import Node, opening_key, paths, pieces_of, unique
from db.records import IMPORTED_RATER

COLUMNS: dict[str, tuple[str, ...]] = {
    "conversation_id": ("conversation_id", "conversation", "conv_id", "dialog_id", "dialogue_id",
                        "thread_id", "session_id", "chat_id"),
    "turn": ("turn", "turn_id", "position", "index", "message_index", "turn_index"),
    "role": ("role", "from", "speaker", "author", "sender"),
    "content": ("content", "text", "message", "value", "utterance"),
    "prompt": ("prompt", "question", "instruction", "user", "input", "query"),
    "answer": ("answer", "response", "output", "completion", "assistant", "reply"),
    "reward": ("reward", "score", "rating", "stars", "label", "grade"),
    "rater": ("rater", "annotator", "rated_by"),
    "note": ("note", "comment"),
    "system": ("system", "system_prompt"),
    "title": ("title",),
    "group": ("group",),
    "id": ("id", "row_id", "message_id"),
    "parent_id": ("parent_id", "parent"),
    "tool_calls": ("tool_calls",),
    "tool_call_id": ("tool_call_id",),
}  # fmt: skip
"""What a column may be called; case does not matter."""

_NAMES = {alias: column for column, aliases in COLUMNS.items() for alias in aliases}
_TURN = frozenset({"role", "content"})
_PAIR = frozenset({"prompt", "answer"})


@dataclass(frozen=True, slots=True)
class _Cells:
    """A row by our names of its columns, with the names in the file beside them."""

    row: int
    values: JsonObject
    columns: dict[str, str]

    def text(self, name: str) -> str:
        """Return a cell as text; empty if it is not there. Numbers may be ids."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return as_text(value, self.columns[name])
        return f"{value:g}" if isinstance(value, float) else str(value)


def _cells(row: Row) -> _Cells:
    data = as_object(row.value, "")
    values: JsonObject = {}
    columns: dict[str, str] = {}
    for key, value in data.items():
        column = _NAMES.get(key.strip().lower(), key)
        if column not in values or values[column] is None:
            values[column] = value
            columns[column] = key
    return _Cells(row.number, values, columns)


def _columns(row: object) -> set[str]:
    if not isinstance(row, dict):
        return set()
    return {_NAMES.get(key.strip().lower(), key) for key in cast(JsonObject, row)}


def _confidence(rows: Sequence[object]) -> float:
    columns = [_columns(row) for row in rows]
    turns = share(columns, lambda names: cast("set[str]", names) >= {*_TURN, "conversation_id"})
    loose = share(columns, lambda names: cast("set[str]", names) >= _TURN)
    pairs = share(columns, lambda names: cast("set[str]", names) >= _PAIR)
    return max(0.95 * turns, 0.6 * loose if turns or _all_text(rows) else 0.0, 0.5 * pairs)


def _all_text(rows: Sequence[object]) -> bool:
    """Return whether no row holds anything but single values, as tables do."""
    return all(
        isinstance(row, dict)
        and not any(isinstance(value, dict | list) for value in cast(JsonObject, row).values())
        for row in rows
    )


def _links(row: object) -> tuple[str, ...]:
    if not isinstance(row, dict):
        return ()
    cells = {_NAMES.get(k.strip().lower(), k): v for k, v in cast(JsonObject, row).items()}
    conversation = _name(cells.get("conversation_id"))
    if conversation:
        return (f"conversation {conversation}",)
    if _is_turn(cells):
        return ("the one conversation",)
    ids = (_name(cells.get("id")), _name(cells.get("parent_id")))
    return tuple(f"row {id}" for id in ids if id)


def _name(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _parse(rows: Sequence[Row], notes: Notes) -> Iterator[Draft]:
    cells: list[_Cells] = []
    for row in rows:
        notes.row = row.number
        cells.append(_cells(row))
        remark_others(cells[-1].values, frozenset(COLUMNS), "", notes)
    turns = [entry for entry in cells if _is_turn(entry.values)]
    pairs = [entry for entry in cells if not _is_turn(entry.values)]
    if turns and pairs:
        notes.row = pairs[0].row
        raise RowError(
            "it has other columns than the other rows of its conversation",
            where="role",
            remedy="Write either a row for each turn, or a row for each question.",
        )
    if turns:
        yield _parse_turns(_in_order(turns, notes), notes)
    else:
        yield from _parse_pairs(pairs, notes)


def _is_turn(columns: Mapping[str, object]) -> bool:
    """Return whether a row is one turn rather than a question with its answer."""
    return "role" in columns and not columns.keys() & _PAIR


def _parse_turns(turns: Sequence[_Cells], notes: Notes) -> Draft:
    pieces: dict[tuple[str, str] | int, Piece] = {}
    rows: dict[tuple[str, str] | int, int] = {}
    for place, cells in enumerate(turns):
        notes.row = cells.row
        piece = _turn(cells, notes)
        turn = cells.text("turn")
        key = (turn, piece.message.role.value) if turn else place
        known = pieces.get(key)
        if known is None:
            pieces[key] = piece
            rows[key] = cells.row
        elif known.message == piece.message:
            pieces[key] = replace(known, scores=known.scores + piece.scores)
            notes.merge("turn", f"row {rows[key]} holds the same turn; its scores count as well")
        else:
            notes.skip(
                "turn",
                f"row {rows[key]} has the same turn and role, and says something else",
                "Give every turn a number of its own.",
            )
    notes.row = min(cells.row for cells in turns)
    return draft([*pieces.values()], path="content", **_facts(turns))


def _turn(cells: _Cells, notes: Notes) -> Piece:
    content = cells.values.get("content")
    entry: JsonObject = {
        "role": cells.text("role"),
        "content": cast(object, content) if isinstance(content, list) else cells.text("content"),
    }
    for name in ("tool_calls", "tool_call_id"):
        if cells.values.get(name) is not None:
            entry[name] = cells.values[name]
    return Piece(parse_message(entry, "", notes), tuple(_reward(cells)))


def _reward(cells: _Cells) -> Iterator[RawScore]:
    if cells.values.get("reward") is not None:
        column = cells.columns["reward"]
        yield RawScore(
            name=column,
            value=cells.values["reward"],
            field=column,
            rater=cells.text("rater") or IMPORTED_RATER,
            note=cells.text("note"),
        )


def _in_order(turns: list[_Cells], notes: Notes) -> list[_Cells]:
    """Sort by `turn` where it is a number in every row; else the order of the file stays."""
    texts = [cells.text("turn") for cells in turns]
    if not any(texts):
        return turns
    try:
        places = [float(text) for text in texts]
    except ValueError:
        notes.row = turns[texts.index("") if "" in texts else 0].row
        notes.flag(
            "turn",
            "it is no number in every row of the conversation: the rows stay in the file's order",
            "Number the turns from 1.",
        )
        return turns
    ordered = sorted(range(len(turns)), key=lambda index: (places[index], index))
    if ordered != list(range(len(turns))):
        notes.row = turns[0].row
        notes.add("the rows of the conversation were put in the order of their turns", "turn")
    return [turns[index] for index in ordered]


def _facts(cells: Sequence[_Cells]) -> dict[str, Any]:
    """Return system prompt, title and group: the first that a row of the conversation has."""
    return {
        name: next((text for entry in cells if (text := entry.text(name))), "")
        for name in ("system", "title", "group")
    }


def _parse_pairs(cells: Sequence[_Cells], notes: Notes) -> Iterator[Draft]:
    if any(entry.text("conversation_id") for entry in cells):
        ordered = _in_order(list(cells), notes)
        yield draft(
            [piece for entry in ordered for piece in _exchange(entry, notes)],
            path="prompt",
            **_facts(cells),
        )
        return
    by_row = {entry.row: entry for entry in cells}
    nodes = [
        Node(
            id=entry.text("id") or f"row {entry.row}",
            parent=entry.text("parent_id") or None,
            row=entry.row,
            field=entry.columns.get("id", "row"),
            pieces=tuple(_exchange(entry, notes)),
        )
        for entry in cells
    ]
    ways = list(paths(unique(nodes, notes), notes))
    for way in ways:
        notes.row = way[-1].row
        pieces = pieces_of(way)
        facts = _facts([by_row[node.row] for node in way])
        if len(ways) > 1 and not facts["group"]:
            facts["group"] = opening_key(pieces)
        yield draft(pieces, path="prompt", **facts)


def _exchange(cells: _Cells, notes: Notes) -> Iterator[Piece]:
    """Yield the question and the answer of a row; either may be missing."""
    notes.row = cells.row
    prompt, answer = cells.text("prompt"), cells.text("answer")
    if prompt:
        yield Piece(make_message("user", prompt, "prompt", notes))
    if answer:
        yield Piece(make_message("assistant", answer, "answer", notes), tuple(_reward(cells)))
    if not prompt and not answer:
        raise RowError(
            "there is neither a question nor an answer",
            where="prompt",
            remedy=f"Name a column {' or '.join(COLUMNS['prompt'][:3])}.",
        )


CSV = Format(
    name="csv",
    title="Table (a row for each turn)",
    about=(
        "One row a turn: `conversation_id`, `turn`, `role`, `content`, and if you like `reward`, "
        "`rater`, `note`, `system`, `title`, `group`, `tool_calls` (JSON), `tool_call_id`. Rows "
        "of a conversation may be scattered; they are put in the order of `turn`. Without a "
        "`conversation_id` all rows are one conversation. Or one row a question: `prompt` and "
        "`answer`, with `system`, `reward`, and `id` and `parent_id` where it goes on from another "
        "row. Columns go by many names (`speaker`, `text`, `rating` ...). An apostrophe before "
        "`=`, `+`, `-` or `@`, which keeps spreadsheets from taking a cell for a formula, is taken "
        "off. Comma, semicolon, tab or bar separate the cells. Tables in Parquet or JSON are read "
        "the same way."
    ),
    example=(
        "conversation_id,turn,role,content,reward\n"
        "1,1,user,Name a colour.,\n"
        "1,2,assistant,Blue.,0.9\n"
    ),
    confidence=_confidence,
    parse=_parse,
    links=_links,
)
