"""Inserting conversations and arriving scores in bulk, inside the caller's transaction."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Table, insert
from sqlalchemy.orm import Session

from db.commands.counting import counts_of, recount
from db.commands.numbering import reserve_ids
from db.commands.users import user_ids
from db.enums import ReviewState
from db.models import (
    AdjudicationTable,
    Base,
    ConversationTable,
    EventTable,
    MessageTable,
    OutcomeTable,
    ReviewTable,
    ScoreTable,
    TagTable,
    now,
)
from db.records import Conversation, Message, Score
from db.text import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Scores that arrive with a message, or (message None) with a conversation as a whole.

    Attributes:
        adjudicates: Whether this is the one score that was decided for the message.
    """

    conversation_id: int
    message_id: int | None
    scores: tuple[Score, ...]
    adjudicates: bool = False


def insert_conversations(
    session: Session,
    hashed: Sequence[tuple[str, Conversation]],
    *,
    import_id: int | None = None,
) -> list[int]:
    """Insert conversations (with their content hashes) and all that belongs to them, in bulk.

    Args:
        session: The caller's transaction.
        hashed: The conversations.
        import_id: The import that brings them, if one does.

    Returns:
        Their ids, in order.
    """
    if not hashed:
        return []
    at = now()
    ids = list(reserve_ids(session, ConversationTable, len(hashed)))
    pairs = [(id, c) for id, (_, c) in zip(ids, hashed, strict=True)]
    rows: list[dict[str, object]] = [
        {
            "id": id,
            "title": c.title,
            "system": c.system,
            "source": c.source,
            "content_hash": digest,
            "archived": c.archived,
            "group_key": c.group_key or None,
            "import_id": import_id,
            "created_at": c.created_at or at,
            "updated_at": c.updated_at or c.created_at or at,
            **counts_of(c),
        }
        for id, (digest, c) in zip(ids, hashed, strict=True)
    ]
    insert_rows(session, ConversationTable, rows)
    insert_rows(
        session,
        TagTable,
        [
            {"conversation_id": id, "tag": tag}
            for id, c in pairs
            for tag in sorted({clean(t) for t in c.tags})
        ],
    )
    targets = _insert_messages(session, pairs)
    targets += [Target(conversation_id=id, message_id=None, scores=c.outcomes) for id, c in pairs]
    raters = _insert_scores(session, targets)
    insert_rows(
        session,
        ReviewTable,
        [
            {
                "conversation_id": id,
                "user_id": raters[rater],
                "state": ReviewState.OPEN,
                "scored_turns": turns,
                "updated_at": at,
            }
            for id, c in pairs
            for rater, turns in Counter(
                clean(s.rater) for m in c.messages for s in m.scores
            ).items()
        ],
    )
    return ids


def _insert_messages(session: Session, pairs: Sequence[tuple[int, Conversation]]) -> list[Target]:
    """Insert the messages of new conversations; return where their scores go."""
    places = [(id, position, m) for id, c in pairs for position, m in enumerate(c.messages)]
    ids = reserve_ids(session, MessageTable, len(places))
    rows: list[dict[str, object]] = []
    targets: list[Target] = []
    for message_id, (id, position, message) in zip(ids, places, strict=True):
        row = message_row(message, conversation_id=id, position=position)
        row["id"] = message_id
        rows.append(row)
        if message.scores or message.adjudicated:
            targets += targets_of(message, conversation_id=id, message_id=message_id)
    insert_rows(session, MessageTable, rows)
    return targets


def targets_of(message: Message, *, conversation_id: int, message_id: int) -> list[Target]:
    """Return where the scores of one message go: those of its raters, and the decided one."""
    decided = () if message.adjudicated is None else (message.adjudicated,)
    return [
        Target(
            conversation_id=conversation_id,
            message_id=message_id,
            scores=scores,
            adjudicates=adjudicates,
        )
        for scores, adjudicates in ((message.scores, False), (decided, True))
        if scores
    ]


def insert_rows(session: Session, table: type[Base], rows: list[dict[str, object]]) -> None:
    """Insert many rows with one prepared statement, past the ORM's bookkeeping.

    Columns that are None in every row are left to the database: each costs time in every row.
    """
    if not rows:
        return
    empty = [name for name in rows[0] if all(row[name] is None for row in rows)]
    for name in empty:
        for row in rows:
            del row[name]
    session.execute(insert(cast(Table, table.__table__)), rows)


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
    """Insert scores of messages that are there, by raters who have none yet, and count again."""
    if any(target.scores for target in targets):
        _insert_scores(session, targets)
        session.flush()
        recount(session, {target.conversation_id for target in targets})


def _insert_scores(session: Session, targets: Sequence[Target]) -> dict[str, int]:
    """Insert scores, log them as not undoable, and return the raters' ids."""
    raters = user_ids(session, {score.rater for target in targets for score in target.scores})
    at = now()
    turns: list[dict[str, object]] = []
    wholes: list[dict[str, object]] = []
    decided: list[dict[str, object]] = []
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
            rows = decided if target.adjudicates else turns
            rows.append({"message_id": target.message_id, **entry})
        events.append(
            {
                "user_id": user_id,
                "conversation_id": target.conversation_id,
                "message_id": target.message_id,
                "new_value": float(score.value),
                "new_note": score.note,
                "undoable": False,
                "adjudicates": target.adjudicates,
                "at": at,
            }
        )
    for table, rows in (
        (ScoreTable, turns),
        (OutcomeTable, wholes),
        (AdjudicationTable, decided),
        (EventTable, events),
    ):
        insert_rows(session, table, rows)
    return raters


def _with_users(
    targets: Sequence[Target], raters: dict[str, int]
) -> Iterator[tuple[Target, Score, int]]:
    for target in targets:
        for score in target.scores:
            yield target, score, raters[clean(score.rater)]
