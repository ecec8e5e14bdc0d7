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

CONVERSATION_COLUMNS = (
    "title",
    "system",
    "source",
    "archived",
    "group_key",
    "turns",
    "scored_turns",
    "score_count",
    "mean_score",
    "uncertainty",
    "content_hash",
    "tools",
)
MESSAGE_COLUMNS = (
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "model",
    "run_id",
    "token_ids",
    "logprobs",
    "sampling",
)
"""The order of a prepared row's values."""

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
    """One conversation, checked and hashed, with values as columns store them (`db.commands.bulk`).

    Attributes:
        digest: Its content hash.
        values: The values of CONVERSATION_COLUMNS.
        created_at: When it was made, None for now.
        updated_at: When it was last changed, None for now.
        tags: Its tags, each once.
        messages: For each message the values of MESSAGE_COLUMNS.
        scores: All that people said.
        row: The row of the file that it came from, 0 if it came from none.
        file: Name of that file, where several are imported together.
    """

    digest: str
    values: list[Any]
    created_at: datetime | None
    updated_at: datetime | None
    tags: list[str]
    messages: list[list[Any]]
    scores: list[PreparedScore]
    row: int = 0
    file: str = ""

    def to_json(self) -> bytes:
        """Return it as one line of JSON."""
        scores = [
            (s.position, s.adjudicates, s.rater, s.value, s.note, _text(s.at)) for s in self.scores
        ]
        times = (_text(self.created_at), _text(self.updated_at))
        place = (self.row, self.file)
        return orjson.dumps(
            (self.digest, self.values, *times, self.tags, self.messages, scores, *place)
        )

    @classmethod
    def from_json(cls, line: bytes) -> "Prepared":
        """Read what `to_json` wrote."""
        digest, values, created_at, updated_at, tags, messages, scores, *place = orjson.loads(line)
        return cls(
            digest,
            values,
            _time(created_at),
            _time(updated_at),
            tags,
            messages,
            [
                PreparedScore(position, decides, rater, value, note, _time(at))
                for position, decides, rater, value, note, at in scores
            ],
            *place,
        )


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def prepare(conversation: Conversation, *, row: int = 0, file: str = "") -> Prepared:
    """Check a conversation and turn it into rows.

    Raises:
        DataError: if it cannot be stored as it is.
    """
    check_conversation(conversation)
    digest = content_hash(conversation)
    counts = counts_of(conversation)
    return Prepared(
        digest=digest,
        values=[
            clean(conversation.title),
            clean(conversation.system),
            clean(conversation.source),
            conversation.archived,
            _group_key(conversation.group),
            counts["turns"],
            counts["scored_turns"],
            counts["score_count"],
            counts["mean_score"],
            counts["uncertainty"],
            digest,
            json.dumps(clean_json(conversation.tools)) if conversation.tools else None,
        ],
        created_at=conversation.created_at,
        updated_at=conversation.updated_at or conversation.created_at,
        tags=sorted({clean(tag) for tag in conversation.tags}),
        messages=[_message_values(message) for message in conversation.messages],
        scores=prepare_scores(conversation.messages, conversation.outcomes),
        row=row,
        file=file,
    )


def _message_values(message: Message) -> list[Any]:
    return [
        message.role.value,
        clean(message.content),
        json.dumps(clean_json(message.tool_calls)) if message.tool_calls else None,
        None if message.tool_call_id is None else clean(message.tool_call_id),
        None if message.model is None else clean(message.model),
        message.run_id,
        None if message.token_ids is None else json.dumps(message.token_ids),
        None if message.logprobs is None else json.dumps(message.logprobs),
        None if message.sampling is None else json.dumps(clean_json(message.sampling)),
    ]


def prepare_scores(
    messages: Sequence[Message], outcomes: Sequence[Score] = ()
) -> list[PreparedScore]:
    """Return all that people said of messages, by their places, and of the whole."""
    return [
        PreparedScore(
            position,
            adjudicates,
            clean(score.rater),
            float(score.value),
            clean(score.note),
            score.at,
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
