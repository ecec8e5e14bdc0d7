"""Inserting conversations and arriving scores in bulk, inside the caller's transaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from db.commands.bulk import insert_many, stored_time
from db.commands.counting import recount
from db.commands.numbering import reserve_ids
from db.commands.preparing import (
    CONVERSATION_COLUMNS,
    MESSAGE_COLUMNS,
    Prepared,
    PreparedScore,
    prepare_scores,
)
from db.commands.users import user_ids
from db.enums import ReviewState
from db.models import (
    AdjudicationTable,
    ConversationTable,
    EventTable,
    MessageTable,
    OutcomeTable,
    ReviewTable,
    ScoreTable,
    TagTable,
    now,
)
from db.records import Message


@dataclass(frozen=True, slots=True)
class Target:
    """A score, and what it is said of: a message, or (message None) a conversation as a whole."""

    conversation_id: int
    message_id: int | None
    score: PreparedScore


def insert_conversations(
    session: Session, prepared: Sequence[Prepared], *, import_id: int | None = None
) -> list[int]:
    """Insert conversations and all that belongs to them, in bulk.

    Args:
        session: The caller's transaction.
        prepared: The conversations.
        import_id: The import that brings them, if one does.

    Returns:
        Their ids, in order.
    """
    if not prepared:
        return []
    at = now()
    stored_at = stored_time(session, at)
    ids = list(reserve_ids(session, ConversationTable, len(prepared)))
    pairs = list(zip(ids, prepared, strict=True))

    def time(given: datetime | None) -> object:
        return stored_at if given is None else stored_time(session, given)

    insert_many(
        session,
        ConversationTable,
        ("id", "import_id", "created_at", "updated_at", *CONVERSATION_COLUMNS),
        [(id, import_id, time(c.created_at), time(c.updated_at), *c.values) for id, c in pairs],
    )
    tags = [(id, tag) for id, c in pairs for tag in c.tags]
    insert_many(session, TagTable, ("conversation_id", "tag"), tags)
    raters = _insert_scores(session, _insert_messages(session, pairs))
    reviews = [
        (id, raters[rater], ReviewState.OPEN.value, turns, stored_at)
        for id, c in pairs
        for rater, turns in _scored_turns(c).items()
    ]
    columns = ("conversation_id", "user_id", "state", "scored_turns", "updated_at")
    insert_many(session, ReviewTable, columns, reviews)
    return ids


def _insert_messages(session: Session, pairs: Sequence[tuple[int, Prepared]]) -> list[Target]:
    """Insert the messages of new conversations; return where their scores go."""
    count = sum(len(c.messages) for _, c in pairs)
    message_ids = reserve_ids(session, MessageTable, count)
    rows: list[tuple[Any, ...]] = []
    targets: list[Target] = []
    for id, c in pairs:
        first = len(rows)
        for position, values in enumerate(c.messages):
            rows.append((message_ids[first + position], id, position, *values))
        for score in c.scores:
            place = None if score.position is None else message_ids[first + score.position]
            targets.append(Target(id, place, score))
    columns = ("id", "conversation_id", "position", *MESSAGE_COLUMNS)
    insert_many(session, MessageTable, columns, rows)
    return targets


def _scored_turns(prepared: Prepared) -> Counter[str]:
    """Return how many turns each rater has scored."""
    return Counter(
        score.rater
        for score in prepared.scores
        if score.position is not None and not score.adjudicates
    )


def targets_of(message: Message, *, conversation_id: int, message_id: int) -> list[Target]:
    """Return where the scores of one message go: those of its raters, and the decided one."""
    scores = prepare_scores([message])
    return [Target(conversation_id, message_id, score) for score in scores]


def message_row(message: Message, *, conversation_id: int, position: int) -> dict[str, Any]:
    """Return what one message says, by its columns' names."""
    return {
        "conversation_id": conversation_id,
        "position": position,
        "role": message.role,
        "content": message.content,
        "tool_calls": list(message.tool_calls) or None,
        "tool_call_id": message.tool_call_id,
        "model": message.model,
        "run_id": message.run_id,
        "token_ids": None if message.token_ids is None else list(message.token_ids),
        "logprobs": None if message.logprobs is None else list(message.logprobs),
        "sampling": message.sampling,
    }


def store_scores(session: Session, targets: Sequence[Target]) -> dict[str, int]:
    """Insert scores of messages that are there, by raters who have none yet, and count again.

    Returns:
        The raters' ids.
    """
    raters = _insert_scores(session, targets)
    recount(session, {target.conversation_id for target in targets})
    return raters


def _insert_scores(session: Session, targets: Sequence[Target]) -> dict[str, int]:
    """Insert scores, log them as not undoable, and return the raters' ids."""
    raters = user_ids(session, {target.score.rater for target in targets})
    now_at = stored_time(session, now())
    turns: list[tuple[Any, ...]] = []
    wholes: list[tuple[Any, ...]] = []
    decided: list[tuple[Any, ...]] = []
    events: list[tuple[Any, ...]] = []
    for target in targets:
        score, user_id = target.score, raters[target.score.rater]
        at = now_at if score.at is None else stored_time(session, score.at)
        said = (user_id, score.value, score.note, at, at)
        if target.message_id is None:
            wholes.append((target.conversation_id, *said))
        elif score.adjudicates:
            decided.append((target.message_id, *said))
        else:
            turns.append((target.message_id, *said))
        place = (target.conversation_id, target.message_id, user_id)
        events.append((*place, score.value, score.note, score.adjudicates, now_at, *_AS_ARRIVED))
    for table, key, rows in (
        (ScoreTable, "message_id", turns),
        (OutcomeTable, "conversation_id", wholes),
        (AdjudicationTable, "message_id", decided),
    ):
        columns = (key, "user_id", "value", "note", "created_at", "updated_at")
        insert_many(session, table, columns, rows)
    insert_many(session, EventTable, _EVENT_COLUMNS, events)
    return raters


_EVENT_COLUMNS = (
    *("conversation_id", "message_id", "user_id", "new_value", "new_note", "adjudicates", "at"),
    *("old_note", "undoable", "is_undo"),
)
_AS_ARRIVED = ("", False, False)
"""The last of these columns: nothing was there before, and undo leaves it alone."""
