"""Preference data: a prompt, the reply that was chosen and the one that was rejected."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from db.formats.draft import Draft
from db.formats.fields import JsonObject, as_object, is_object_with, remark_others, unfold
from db.formats.format import Format, each_row
from db.formats.openai import write_message
from db.formats.pairs import PREFERENCE, parse_pair
from db.formats.prompts import PROMPT_KEYS, has_prompt, is_transcript
from db.formats.replies import scored_replies
from db.formats.result import Notes, share
from db.formats.tools import tools_text_field
from db.records import Conversation

_KEYS = frozenset(
    {
        *PROMPT_KEYS,
        *("system", "tools", "title", "id"),
        *("chosen", "rejected", "score_chosen", "score_rejected"),
    }
)


def _confidence(rows: Sequence[object]) -> float:
    return max(0.98 * share(rows, _fits), 0.7 * share(rows, _is_pair))


def _is_pair(row: object) -> bool:
    return is_object_with(row, "chosen", "rejected")


def _fits(row: object) -> bool:
    """Return whether a row has a prompt of its own and two replies to it, not transcripts."""
    if not _is_pair(row):
        return False
    data = cast(JsonObject, row)
    chosen = unfold(data["chosen"])
    is_reply = not (isinstance(chosen, list) and len(cast("list[object]", chosen)) > 1)
    return has_prompt(data) and is_reply and not is_transcript(data["chosen"])


def _parse_row(row: object, notes: Notes) -> Iterator[Draft]:
    data = as_object(row, "")
    remark_others(data, _KEYS, "", notes)
    yield from parse_pair(data, notes)


def rows(conversations: Iterable[Conversation]) -> Iterator[dict[str, Any]]:
    """Yield a row for each two replies to the same prompt of which one is scored higher."""
    by_prompt: dict[bytes, list[Any]] = {}
    for reply in scored_replies(conversations):
        by_prompt.setdefault(reply.prompt_hash, []).append(reply)
    for replies in by_prompt.values():
        ordered = sorted(replies, key=lambda reply: -reply.score)
        for place, better in enumerate(ordered):
            for worse in ordered[place + 1 :]:
                if better.score > worse.score:
                    yield {
                        "prompt": better.prompt(),
                        "chosen": [write_message(better.message)],
                        "rejected": [write_message(worse.message)],
                        "score_chosen": better.score,
                        "score_rejected": worse.score,
                        **tools_text_field(better.conversation.tools),
                    }


PREFERENCE_PAIRS = Format(
    name="preference",
    title="Preference pairs",
    about=(
        "A prompt (`prompt` or `messages`, as text or as messages) with a `chosen` and a "
        "`rejected` reply. A row becomes two conversations in one group; the last turn is scored "
        "1 where it was chosen and 0 where it was rejected, or by `score_chosen` and "
        "`score_rejected` if they are there. Scores that contradict the choice are left out. "
        "`tools` may stand beside them."
    ),
    example=(
        '{"prompt": [{"role": "user", "content": "Name a colour."}], '
        '"chosen": [{"role": "assistant", "content": "Blue."}], '
        '"rejected": [{"role": "assistant", "content": "No."}]}\n'
    ),
    confidence=_confidence,
    parse=each_row(_parse_row),
    scales=(PREFERENCE,),
)
