"""Replies with a number each: a prompt, its completion, and how good it is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from db.formats.draft import Draft, RawScore, draft
from db.formats.fields import (
    JsonObject,
    as_object,
    is_object_with,
    optional_text,
    remark_others,
    required,
)
from db.formats.format import Format, each_row
from db.formats.openai import write_message
from db.formats.prompts import PROMPT_KEYS, has_prompt, parse_prompt, parse_reply
from db.formats.replies import scored_replies
from db.formats.result import Notes, share
from db.formats.tools import parse_tools, tools_text_field
from db.records import Conversation

_SCORES = ("score", "reward", "rating", "stars")
_KEYS = frozenset({*PROMPT_KEYS, *_SCORES, "system", "tools", "title", "id", "completion"})


def _confidence(rows: Sequence[object]) -> float:
    return max(0.95 * share(rows, _fits), 0.6 * share(rows, _is_completion))


def _is_completion(row: object) -> bool:
    return is_object_with(row, "completion") and has_prompt(cast(JsonObject, row))


def _fits(row: object) -> bool:
    return _is_completion(row) and any(key in cast(JsonObject, row) for key in _SCORES)


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _KEYS, "", notes)
    reply = parse_reply(required(data, "completion", ""), "completion", notes)
    raws = tuple(RawScore(name=key, value=data[key], field=key) for key in _SCORES if key in data)
    pieces = [*parse_prompt(data, notes), *reply[:-1], replace(reply[-1], scores=raws)]
    yield draft(
        pieces,
        path="completion",
        tools=parse_tools(data),
        title=optional_text(data, "title", ""),
    )


def rows(conversations: Iterable[Conversation]) -> Iterator[dict[str, Any]]:
    """Yield a row for each scored reply: what was said before, the reply, and its mean score."""
    for reply in scored_replies(conversations):
        yield {
            "prompt": reply.prompt(),
            "completion": [write_message(reply.message)],
            "score": reply.score,
            **tools_text_field(reply.conversation.tools),
        }


COMPLETIONS = Format(
    name="completions",
    title="Scored completions",
    about=(
        "`prompt` or `messages`, a `completion` (text or messages), and a number: `score`, "
        "`reward`, `rating` or `stars`. It becomes the score of the last turn. "
        "`tools` may stand beside them."
    ),
    example='{"prompt": "Name a colour.", "completion": "Blue.", "score": 0.9}\n',
    confidence=_confidence,
    parse=each_row(_parse_row),
)
