"""Inserting conversations and arriving scores in bulk, inside the caller's transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import insert
from sqlalchemy.orm import Session

from db.commands.users import user_ids
from db.hashing import content_hash
from db.models import (
    ConversationTable,
    EventTable,
    MessageTable,
    OutcomeTable,
    ScoreTable,
    TagTable,
    now,
)
from db.records import Conversation, Message, Score
from db.text import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Scores that arrive with a message, or (message None) with a conversation as a whole."""

    conversation_id: int
    message_id: int | None
    scores: tuple[Score, ...]


def insert_conversations(session: Session, conversations: Sequence[Conversation]) -> list[int]:
    """Insert conversations with all that belongs to them, in bulk; return their ids."""
    if not conversations:
        return []
    at = now()
    rows: list[dict[str, object]] = [
        {
            "title": c.title,
            "system": c.system,
            "source": c.source,
            "content_hash": content_hash(c),
            "archived": c.archived,
            "created_at": c.created_at or at,
            "updated_at": c.updated_at or c.created_at or at,
        }
        for c in conversations
    ]
    ids = _insert_returning(session, ConversationTable, rows)
    pairs = list(zip(ids, conversations, strict=True))
    tags = [
        {"conversation_id": id, "tag": tag}
        for id, c in pairs
        for tag in sorted({clean(t) for t in c.tags})
    ]
    if tags:
        session.execute(insert(TagTable), tags)
    messages = [
        message_row(message, conversation_id=id, position=position)
        for id, c in pairs
        for position, message in enumerate(c.messages)
    ]
    message_ids = iter(_insert_returning(session, MessageTable, messages))
    targets = [
        Target(conversation_id=id, message_id=next(message_ids), scores=message.scores)
        for id, c in pairs
        for message in c.messages
    ]
    targets += [Target(conversation_id=id, message_id=None, scores=c.outcomes) for id, c in pairs]
    store_scores(session, targets)
    return ids


def _insert_returning(
    session: Session,
    table: type[ConversationTable] | type[MessageTable],
    rows: list[dict[str, object]],
) -> list[int]:
    if not rows:
        return []
    statement = insert(table).returning(table.id, sort_by_parameter_order=True)
    return list(session.scalars(statement, rows))


def message_row(message: Message, *, conversation_id: int, position: int) -> dict[str, object]:
    """Return the column values of one message."""
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
    }


def store_scores(session: Session, targets: Sequence[Target]) -> None:
    """Insert scores where their raters have none yet, and log them as not undoable."""
    raters = user_ids(session, {score.rater for target in targets for score in target.scores})
    at = now()
    turns: list[dict[str, object]] = []
    wholes: list[dict[str, object]] = []
    events: list[dict[str, object]] = []
    for target, score, user_id in _with_users(targets, raters):
        entry: dict[str, object] = {
            "user_id": user_id,
            "value": float(score.value),
            "note": score.note,
            "created_at": score.at or at,
            "updated_at": score.at or at,
        }
        if target.message_id is None:
            wholes.append({"conversation_id": target.conversation_id, **entry})
        else:
            turns.append({"message_id": target.message_id, **entry})
        events.append(
            {
                "user_id": user_id,
                "conversation_id": target.conversation_id,
                "message_id": target.message_id,
                "new_value": float(score.value),
                "new_note": score.note,
                "undoable": False,
            }
        )
    for table, rows in ((ScoreTable, turns), (OutcomeTable, wholes), (EventTable, events)):
        if rows:
            session.execute(insert(table), rows)


def _with_users(
    targets: Sequence[Target], raters: dict[str, int]
) -> Iterator[tuple[Target, Score, int]]:
    for target in targets:
        for score in target.scores:
            yield target, score, raters[clean(score.rater)]
