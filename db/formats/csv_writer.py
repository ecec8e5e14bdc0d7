"""Conversations as a table for spreadsheets: one record a turn."""

import json
from collections.abc import Iterable, Iterator

from db.enums import Role
from db.formats.csv_rows import guard
from db.records import IMPORTED_RATER, Conversation, Message
from db.text import clean

HEADER = (
    "conversation_id", "turn", "role", "content", "reward", "rater", "note", "title", "group",
    "tool_calls", "tool_call_id",
)  # fmt: skip


def records(conversations: Iterable[Conversation]) -> Iterator[list[str]]:
    """Yield the header and a record for each turn, safe to open in a spreadsheet.

    The system prompt is turn 0. Of several scores of a reply the mean is written, without a rater.
    """
    yield list(HEADER)
    for number, conversation in enumerate(conversations, start=1):
        id = str(number) if conversation.id is None else str(conversation.id)
        said = list(enumerate(conversation.messages, start=1))
        if conversation.system:
            said.insert(0, (0, Message(role=Role.SYSTEM, content=conversation.system)))
        for turn, message in said:
            cells = [
                message.content,
                *_score_cells(message),
                conversation.title,
                conversation.group,
                json.dumps(list(message.tool_calls), ensure_ascii=False, allow_nan=False)
                if message.tool_calls
                else "",
                message.tool_call_id or "",
            ]
            reward = cells[1]  # a number, which may begin with a minus, is no formula
            safe = [guard(clean(cell)) for cell in cells]
            safe[1] = reward
            yield [id, str(turn), message.role.value, *safe]


def _score_cells(message: Message) -> tuple[str, str, str]:
    match message.scores:
        case ():
            return "", "", ""
        case (score,):
            rater = "" if score.rater == IMPORTED_RATER else score.rater
            return repr(score.value), rater, score.note
        case scores:
            return repr(sum(score.value for score in scores) / len(scores)), "", ""
