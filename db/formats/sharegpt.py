"""The ShareGPT format: {"conversations": [{"from", "value"}]}, or the bare list."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from db.enums import Role
from db.formats.draft import Draft, Piece, draft, parse_piece, short_score
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    is_object_with,
    optional_text,
    remark_others,
    required,
    required_text,
)
from db.formats.format import Format, each_row
from db.formats.messages import MESSAGE_KEYS, make_message
from db.formats.result import Notes, share
from db.formats.tools import parse_tools, tools_text_field
from db.records import Conversation, Message

_FROM = {Role.USER: "human", Role.ASSISTANT: "gpt", Role.SYSTEM: "system", Role.TOOL: "observation"}


def _confidence(rows: Sequence[object]) -> float:
    return 0.95 * share(rows, _fits)


def _fits(row: object) -> bool:
    if isinstance(row, list):
        return any(_is_message(entry) for entry in cast("list[object]", row))
    return is_object_with(row, "conversations")


def _is_message(entry: object) -> bool:
    return is_object_with(entry, "from", "value") or is_object_with(entry, "role", "content")


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    system, title, path = "", "", "conversations"
    tools: tuple[JsonObject, ...] = ()
    if isinstance(row, list):
        entries, path = cast("list[object]", row), ""
    else:
        data = as_object(row, "")
        remark_others(
            data, frozenset({"conversations", "system", "tools", "title", "id"}), "", notes
        )
        entries = as_list(required(data, path, ""), path)
        system = optional_text(data, "system", "")
        title = optional_text(data, "title", "")
        tools = parse_tools(data)
    pieces = [
        _parse_entry(as_object(entry, f"{path}[{index}]"), f"{path}[{index}]", notes)
        for index, entry in enumerate(entries)
    ]
    yield draft(pieces, path=path, system=system, tools=tools, title=title)


def _parse_entry(entry: JsonObject, path: str, notes: Notes) -> Piece:
    if "from" not in entry and "role" in entry:
        remark_others(entry, MESSAGE_KEYS, "conversations[]", notes)
        return parse_piece(entry, path, notes)
    remark_others(entry, frozenset({"from", "value", "score"}), "conversations[]", notes)
    role_name = required_text(entry, "from", path)
    said = make_message(role_name, required_text(entry, "value", path), f"{path}.from", notes)
    return Piece(said, short_score(entry, said.role, path))


def to_row(conversation: Conversation) -> dict[str, Any]:
    """Return what was said as JSON data.

    A reply that says something and calls a tool becomes two entries.
    """
    row: dict[str, Any] = {}
    if conversation.system:
        row["system"] = conversation.system
    row["conversations"] = [
        entry for message in conversation.messages for entry in _write_message(message)
    ]
    row |= tools_text_field(conversation.tools)
    return row


def _write_message(message: Message) -> Iterator[dict[str, Any]]:
    if message.content or not message.tool_calls:
        yield {"from": _FROM[message.role], "value": message.content}
    if message.tool_calls:
        functions = [call["function"] for call in message.tool_calls]
        value = functions[0] if len(functions) == 1 else functions
        yield {"from": "function_call", "value": json.dumps(value, ensure_ascii=False)}


SHAREGPT = Format(
    name="sharegpt",
    title="ShareGPT",
    about=(
        "`from` and `value`, or `role` and `content`, under `conversations`; `system` and `tools` "
        'may stand beside it. A bare list of messages, and `{"data": [...]}` around the rows, will '
        "do as well. A `function_call` becomes a tool call, an `observation` its answer."
    ),
    example=(
        '{"conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi!"}]}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
