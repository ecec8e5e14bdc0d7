"""EveryTurn's own format, written: one object a line that loses nothing."""

import json
from datetime import UTC, datetime
from typing import Any

from db.enums import Role
from db.formats.tools import tools_field
from db.records import Conversation, Message, Score
from db.text import clean_json


def write_row(conversation: Conversation) -> str:
    """Return a conversation as one line of JSON, without the line's end."""
    return json.dumps(native_row(conversation), ensure_ascii=False, allow_nan=False)


def native_row(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as JSON data; what is not known is left out."""
    row: dict[str, Any] = {"title": conversation.title}
    if conversation.id is not None:
        row["id"] = conversation.id
    if conversation.system or conversation.messages[0].role is Role.SYSTEM:
        row["system"] = conversation.system
    row |= tools_field(conversation.tools)
    if conversation.source:
        row["source"] = conversation.source
    if conversation.group:
        row["group"] = conversation.group
    if conversation.tags:
        row["tags"] = list(conversation.tags)
    row["messages"] = [_write_message(message) for message in conversation.messages]
    if conversation.outcomes:
        row["outcomes"] = [_write_score(score) for score in conversation.outcomes]
    if conversation.created_at is not None:
        row["created_at"] = _write_time(conversation.created_at)
    if conversation.updated_at is not None:
        row["updated_at"] = _write_time(conversation.updated_at)
    if conversation.archived:
        row["archived"] = True
    return clean_json(row)


def _write_message(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.id is not None:
        entry["id"] = message.id
    if message.tool_calls:
        entry["tool_calls"] = list(message.tool_calls)
    if message.scores:
        entry["scores"] = [_write_score(score) for score in message.scores]
    if message.adjudicated is not None:
        entry["adjudicated"] = _write_score(message.adjudicated)
    for key, value in (
        ("tool_call_id", message.tool_call_id),
        ("model", message.model),
        ("run_id", message.run_id),
        ("token_ids", message.token_ids),
        ("logprobs", message.logprobs),
        ("sampling", message.sampling),
    ):
        if value is not None:
            entry[key] = list(value) if isinstance(value, tuple) else value
    return entry


def _write_score(score: Score) -> dict[str, Any]:
    entry: dict[str, Any] = {"rater": score.rater, "value": score.value}
    if score.note:
        entry["note"] = score.note
    if score.at is not None:
        entry["at"] = _write_time(score.at)
    return entry


def _write_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()
