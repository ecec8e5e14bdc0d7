"""Conversations as rows that only want their ids: all that can be done before a transaction begins."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from db.commands.counting import counts_of
from db.hashing import content_hash
from db.records import Conversation, Message, Score
from db.scoring import check_conversation
from db.text import clean, clean_json

MESSAGE_COLUMNS = (
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "model",
    "run_id",
    "token_ids",
    "logprobs",
)
"""The order of a prepared message's values."""

_BY_STANDARD_LIBRARY = b" "
_LONGEST_GROUP_KEY = 64


@dataclass(frozen=True, slots=True)
class PreparedScore:
    """A score that arrives with a message, or (position None) with the conversation as a whole.

    Attributes:
        position: The message's place in the conversation.
        adjudicates: Whether this is the one score that was decided for the message.
    """

    position: int | None
    adjudicates: bool
    rater: str
    value: float
    note: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """One conversation, checked and hashed.

    Attributes:
        digest: Its content hash.
        columns: Column values of its row, but for the ids.
        tags: Its tags, each once.
        messages: For each message the values of MESSAGE_COLUMNS.
        scores: All that people said.
        row: The row of the file that it came from, 0 if it came from none.
    """

    digest: str
    columns: dict[str, Any]
    tags: list[str]
    messages: list[list[Any]]
    scores: list[PreparedScore]
    row: int = 0

    def to_json(self) -> bytes:
        """Return it as one line of JSON."""
        columns = {
            key: value.isoformat() if isinstance(value, datetime) else value
            for key, value in self.columns.items()
        }
        scores = [
            (s.position, s.adjudicates, s.rater, s.value, s.note, s.at and s.at.isoformat())
            for s in self.scores
        ]
        data = (self.digest, columns, self.tags, self.messages, scores, self.row)
        try:
            return orjson.dumps(data)
        except TypeError:  # a number beyond 64 bits in a tool call
            return _BY_STANDARD_LIBRARY + json.dumps(data).encode()

    @classmethod
    def from_json(cls, line: bytes) -> "Prepared":
        """Read what `to_json` wrote."""
        is_orjson = not line.startswith(_BY_STANDARD_LIBRARY)
        data: Any = orjson.loads(line) if is_orjson else json.loads(line)
        digest, columns, tags, messages, scores, row = data
        for key in ("created_at", "updated_at"):
            columns[key] = _time(columns[key])
        return cls(
            digest,
            columns,
            tags,
            messages,
            [
                PreparedScore(position, decides, rater, value, note, _time(at))
                for position, decides, rater, value, note, at in scores
            ],
            row,
        )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def prepare(conversation: Conversation, *, row: int = 0) -> Prepared:
    """Check a conversation and turn it into rows.

    Raises:
        DataError: if it cannot be stored as it is.
    """
    check_conversation(conversation)
    return Prepared(
        digest=content_hash(conversation),
        columns={
            "title": clean(conversation.title),
            "system": clean(conversation.system),
            "source": clean(conversation.source),
            "archived": conversation.archived,
            "group_key": _group_key(conversation.group),
            "created_at": conversation.created_at,
            "updated_at": conversation.updated_at or conversation.created_at,
            **counts_of(conversation),
        },
        tags=sorted({clean(tag) for tag in conversation.tags}),
        messages=[message_values(message) for message in conversation.messages],
        scores=prepare_scores(conversation.messages, conversation.outcomes),
        row=row,
    )


def message_values(message: Message) -> list[Any]:
    """Return the values of MESSAGE_COLUMNS for one message."""
    return [
        message.role.value,
        clean(message.content),
        clean_json(message.tool_calls) or None,
        None if message.tool_call_id is None else clean(message.tool_call_id),
        None if message.model is None else clean(message.model),
        message.run_id,
        None if message.token_ids is None else list(message.token_ids),
        None if message.logprobs is None else list(message.logprobs),
    ]


def prepare_scores(
    messages: Sequence[Message], outcomes: Sequence[Score] = ()
) -> list[PreparedScore]:
    """Return all that people said of messages, by their places, and of the whole."""
    return [
        PreparedScore(
            position, adjudicates, clean(score.rater), float(score.value), score.note, score.at
        )
        for position, adjudicates, scores in _scored(messages, outcomes)
        for score in scores
    ]


def _scored(
    messages: Sequence[Message], outcomes: Sequence[Score]
) -> Iterator[tuple[int | None, bool, Sequence[Score]]]:
    for position, message in enumerate(messages):
        if message.scores:
            yield position, False, message.scores
        if message.adjudicated is not None:
            yield position, True, (message.adjudicated,)
    yield None, False, outcomes


def _group_key(key: str) -> str | None:
    key = clean(key)
    if len(key) > _LONGEST_GROUP_KEY:
        return hashlib.sha256(key.encode()).hexdigest()
    return key or None
