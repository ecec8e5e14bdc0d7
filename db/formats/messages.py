"""One message in the shape that OpenAI made common: roles, content parts, tool calls."""

import json
from typing import Any, cast

from db.enums import Role
from db.formats.fields import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    describe,
    join,
    optional_text,
    required,
    required_text,
)
from db.formats.result import Notes, RowError
from db.records import Message
from db.text import clean_json

ROLE_ALIASES: dict[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "prompter": Role.USER,
    "assistant": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "chatgpt": Role.ASSISTANT,
    "bot": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "function_call": Role.ASSISTANT,
    "tool_call": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
    "observation": Role.TOOL,
    "tool_response": Role.TOOL,
}
"""What other programs call the four roles; case does not matter."""

_CALL_ROLES = ("function_call", "tool_call")
_TEXT_PARTS = ("text", "input_text", "output_text")

MESSAGE_KEYS = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "function_call", "score"}
)
"""The fields of a message that `parse_message` reads."""


def parse_message(data: JsonObject, path: str, notes: Notes) -> Message:
    """Read role, content and tool calls of a message.

    Raises:
        RowError: naming the field.
    """
    role_name = required_text(data, "role", path)
    tool_calls = _parse_tool_calls(data, path)
    content = data.get("content")
    if content is None and not tool_calls:
        required(data, "content", path)
        raise RowError(
            "the content is null and there is no tool call",
            where=join(path, "content"),
            remedy="Write the message's text, or remove the message.",
        )
    text = "" if content is None else _parse_content(content, join(path, "content"))
    message = make_message(role_name, text, join(path, "role"), notes)
    if tool_calls and message.role is not Role.ASSISTANT:
        raise RowError(
            f"a {message.role} message makes tool calls",
            where=join(path, "tool_calls"),
            remedy="Only the assistant makes tool calls.",
        )
    call_id = optional_text(data, "tool_call_id", path)
    return Message(
        role=message.role,
        content=message.content,
        tool_calls=tool_calls or message.tool_calls,
        tool_call_id=call_id or None,
    )


def make_message(role_name: str, text: str, role_path: str, notes: Notes) -> Message:
    """Return a message under a role's own name or an alias.

    Under "function_call" the text is the call, as JSON.

    Raises:
        RowError: if there is no such role.
    """
    name = role_name.strip().lower()
    role = ROLE_ALIASES.get(name)
    if role is None:
        raise RowError(
            f"the role {role_name[:40]!r} is unknown",
            where=role_path,
            remedy=f"Use one of: {', '.join(ROLE_ALIASES)}.",
        )
    if name not in _CALL_ROLES:
        return Message(role=role, content=text)
    calls = _read_calls(text)
    if calls is None:
        notes.add(f"a {name} holds no JSON call and was kept as plain text")
        return Message(role=role, content=text)
    return Message(role=role, content="", tool_calls=calls)


def lift_system(messages: list[Message], system: str = "") -> tuple[str, tuple[Message, ...]]:
    """Take a leading system message out of the messages, unless there is a system prompt."""
    if messages and messages[0].role is Role.SYSTEM and not system:
        return messages[0].content, tuple(messages[1:])
    return system, tuple(messages)


def require_messages(messages: tuple[Message, ...], path: str) -> tuple[Message, ...]:
    """Refuse a conversation in which nobody says anything.

    Raises:
        RowError: if there is no message.
    """
    if not messages:
        raise RowError("there is no message", where=path, remedy="Add at least one message.")
    return messages


def _parse_content(content: object, path: str) -> str:
    if isinstance(content, list):
        parts = as_list(cast(object, content), path)
        return "".join(_parse_part(part, f"{path}[{i}]") for i, part in enumerate(parts))
    return as_text(content, path)


def _parse_part(part: object, path: str) -> str:
    if isinstance(part, str):
        return as_text(part, path)
    data = as_object(part, path)
    kind = required_text(data, "type", path)
    if kind not in _TEXT_PARTS:
        raise RowError(
            f"a content part of type {kind[:40]!r} is no text",
            where=join(path, "type"),
            remedy="Only text can be scored and trained on; remove the part.",
        )
    return required_text(data, "text", path)


def _parse_tool_calls(data: JsonObject, path: str) -> tuple[dict[str, Any], ...]:
    if data.get("tool_calls") is not None:
        field = join(path, "tool_calls")
        calls = as_list(data["tool_calls"], field)
        return tuple(_parse_call(call, f"{field}[{i}]") for i, call in enumerate(calls))
    if data.get("function_call") is not None:
        field = join(path, "function_call")
        function = _parse_function(data["function_call"], field)
        return ({"type": "function", "function": function},)
    return ()


def _parse_call(call: object, path: str) -> dict[str, Any]:
    data = as_object(call, path)
    _parse_function(required(data, "function", path), join(path, "function"))
    return clean_json(data)


def _parse_function(function: object, path: str) -> dict[str, Any]:
    data = as_object(function, path)
    required_text(data, "name", path)
    arguments = data.get("arguments")
    if not isinstance(arguments, str | dict | None):
        raise RowError(
            f"{describe(arguments)} stands where the call's arguments are expected",
            where=join(path, "arguments"),
            remedy="Write them as a JSON object, or as text that holds one.",
        )
    return clean_json(data)


def _read_calls(text: str) -> tuple[dict[str, Any], ...] | None:
    """Read one call {"name", "arguments"}, or a list of them; None if the text holds none."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    calls: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    try:
        functions = [_parse_function(call, "") for call in calls]
    except RowError:
        return None
    if not functions:
        return None
    return tuple({"type": "function", "function": function} for function in functions)
