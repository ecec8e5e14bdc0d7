"""Replies with a thumb up or down, as KTO trainers take them."""

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
from db.formats.scales import Scale, ScaleKind
from db.formats.tools import parse_tools, tools_text_field
from db.records import Conversation

GOOD_FROM = 0.5
"""A reply whose mean score is at least this is written as good."""

_KEYS = frozenset({*PROMPT_KEYS, "system", "tools", "title", "id", "completion", "label"})


def _confidence(rows: Sequence[object]) -> float:
    return share(rows, _fits)


def _fits(row: object) -> bool:
    return is_object_with(row, "completion", "label") and has_prompt(cast(JsonObject, row))


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _KEYS, "", notes)
    reply = parse_reply(required(data, "completion", ""), "completion", notes)
    raw = RawScore(name="label", value=data.get("label"), field="label")
    pieces = [*parse_prompt(data, notes), *reply[:-1], replace(reply[-1], scores=(raw,))]
    yield draft(
        pieces,
        path="completion",
        tools=parse_tools(data),
        title=optional_text(data, "title", ""),
    )


def rows(conversations: Iterable[Conversation]) -> Iterator[dict[str, Any]]:
    """Yield a row for each scored reply: what was said before, the reply, and good or not."""
    for reply in scored_replies(conversations):
        yield {
            "prompt": reply.prompt(),
            "completion": [write_message(reply.message)],
            "label": reply.score >= GOOD_FROM,
            **tools_text_field(reply.conversation.tools),
        }


KTO = Format(
    name="kto",
    title="Thumbs up and down (KTO)",
    about=(
        "`prompt` or `messages`, a `completion` (text or messages) and a boolean `label`, which "
        "becomes the score of the last turn: 1 or 0. `tools` may stand beside them."
    ),
    example='{"prompt": "Name a colour.", "completion": "Blue.", "label": true}\n',
    confidence=_confidence,
    parse=each_row(_parse_row),
    scales=(Scale(name="label", kind=ScaleKind.YES_NO, to_low=0.0, to_high=1.0),),
)
