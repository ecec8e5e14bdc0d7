"""The format of OpenAI's chat fine-tuning files: {"messages": [{role, content}]}."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from db.enums import Role
from db.formats.draft import Draft, Piece, draft, parse_piece
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    is_object_with,
    remark_others,
    required,
)
from db.formats.format import Format, each_row
from db.formats.messages import MESSAGE_KEYS
from db.formats.result import Notes, share
from db.formats.tools import parse_tools, tools_field
from db.records import Conversation, Message

_OTHERS = frozenset(
    {"chosen", "rejected", "completion", "mapping", "message_tree_id", "annotations", "responses"}
)
"""Fields that say that the messages are only a part of what a row holds."""


def _confidence(rows: Sequence[object]) -> float:
    return 0.9 * share(rows, _fits)


def _fits(row: object) -> bool:
    return is_object_with(row, "messages") and not cast(JsonObject, row).keys() & _OTHERS


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, frozenset({"messages", "id", "tools"}), "", notes)
    pieces = parse_pieces(required(data, "messages", ""), "messages", notes)
    yield draft(pieces, path="messages", tools=parse_tools(data))


def parse_pieces(value: object, path: str, notes: Notes) -> list[Piece]:
    """Read a list of messages.

    Raises:
        RowError: naming the field.
    """
    pieces: list[Piece] = []
    for index, item in enumerate(as_list(value, path)):
        field = f"{path}[{index}]"
        entry = as_object(item, field)
        remark_others(entry, MESSAGE_KEYS, f"{path}[]", notes)
        pieces.append(parse_piece(entry, field, notes))
    return pieces


def write_message(message: Message) -> dict[str, Any]:
    """Return a message as JSON data, without scores."""
    entry: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        entry["tool_calls"] = list(message.tool_calls)
        entry["content"] = message.content or None
    if message.tool_call_id is not None:
        entry["tool_call_id"] = message.tool_call_id
    return entry


def write_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the messages of a conversation as JSON data, its system prompt first."""
    system = [Message(role=Role.SYSTEM, content=conversation.system)] if conversation.system else []
    return [write_message(message) for message in (*system, *conversation.messages)]


def to_row(conversation: Conversation) -> dict[str, Any]:
    """Return what was said as JSON data."""
    return {"messages": write_messages(conversation), **tools_field(conversation.tools)}


OPENAI = Format(
    name="openai",
    title="OpenAI messages",
    about=(
        "Chat messages. A leading `system` or `developer` message becomes the system prompt, a later "
        "one stays where it stands; the export calls both `system`. "
        "Content is text, a list of text parts (they are joined), or null beside `tool_calls`; "
        "pictures and sound are refused. Tool calls, tool messages and `tools`, the functions that "
        "could be called, are kept. A reply may carry "
        '`"score": 0.5`, a score by the rater "imported"; null, or no `score`, is none.'
    ),
    example=(
        '{"messages": [{"role": "user", "content": "Hello"}, '
        '{"role": "assistant", "content": "Hi!"}]}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
)
