"""The format of OpenAI's chat fine-tuning files: {"messages": [{role, content}]}."""

import json
from typing import Any

from db.enums import Role
from db.formats.fields import (
    as_list,
    as_object,
    is_object_with,
    remark_others,
    required,
)
from db.formats.messages import MESSAGE_KEYS, lift_system, parse_message, require_messages
from db.formats.result import Format, Notes
from db.records import Conversation, Message
from db.text import clean_json


def _recognises(row: object) -> bool:
    return is_object_with(row, "messages")


def _parse_row(row: object, notes: Notes) -> Conversation:
    data = as_object(row, "")
    remark_others(data, frozenset({"messages"}), "", notes)
    messages: list[Message] = []
    for index, value in enumerate(as_list(required(data, "messages", ""), "messages")):
        path = f"messages[{index}]"
        entry = as_object(value, path)
        remark_others(entry, MESSAGE_KEYS, "messages[]", notes)
        messages.append(parse_message(entry, path, notes))
    system, rest = lift_system(messages)
    return Conversation(system=system, messages=require_messages(rest, "messages"))


def _write_row(conversation: Conversation) -> str:
    messages: list[dict[str, Any]] = []
    if conversation.system:
        messages.append({"role": Role.SYSTEM.value, "content": conversation.system})
    for message in conversation.messages:
        entry: dict[str, Any] = {"role": message.role.value, "content": message.content}
        if message.tool_calls:
            entry["tool_calls"] = list(message.tool_calls)
            entry["content"] = message.content or None
        if message.tool_call_id is not None:
            entry["tool_call_id"] = message.tool_call_id
        messages.append(entry)
    return json.dumps(clean_json({"messages": messages}), ensure_ascii=False, allow_nan=False)


OPENAI = Format(name="openai", recognises=_recognises, parse_row=_parse_row, write_row=_write_row)
