"""The ShareGPT format: {"conversations": [{"from", "value"}]}, or the bare list."""

from dataclasses import replace
from typing import cast

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
from db.formats.messages import (
    MESSAGE_KEYS,
    lift_system,
    make_message,
    parse_message,
    parse_short_score,
    require_messages,
)
from db.formats.result import Format, Notes
from db.records import Conversation, Message


def _recognises(row: object) -> bool:
    if isinstance(row, list):
        return any(_is_message(entry) for entry in cast("list[object]", row))
    return is_object_with(row, "conversations")


def _is_message(entry: object) -> bool:
    return is_object_with(entry, "from", "value") or is_object_with(entry, "role", "content")


def _parse_row(row: object, notes: Notes) -> Conversation:
    system, title, path = "", "", "conversations"
    if isinstance(row, list):
        entries, path = cast("list[object]", row), ""
    else:
        data = as_object(row, "")
        remark_others(data, frozenset({"conversations", "system", "title", "id"}), "", notes)
        entries = as_list(required(data, path, ""), path)
        system = optional_text(data, "system", "")
        title = optional_text(data, "title", "")
    messages = [
        _parse_entry(as_object(entry, f"{path}[{index}]"), f"{path}[{index}]", notes)
        for index, entry in enumerate(entries)
    ]
    system, rest = lift_system(messages, system)
    return Conversation(title=title, system=system, messages=require_messages(rest, path or "row"))


def _parse_entry(entry: JsonObject, path: str, notes: Notes) -> Message:
    if "from" not in entry and "role" in entry:
        remark_others(entry, MESSAGE_KEYS, "conversations[]", notes)
        return parse_message(entry, path, notes)
    remark_others(entry, frozenset({"from", "value", "score"}), "conversations[]", notes)
    role_name = required_text(entry, "from", path)
    said = make_message(role_name, required_text(entry, "value", path), f"{path}.from", notes)
    return replace(said, scores=parse_short_score(entry, said.role, path))


SHAREGPT = Format(name="sharegpt", recognises=_recognises, parse_row=_parse_row)
