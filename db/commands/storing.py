"""Inserting conversations and arriving scores in bulk, inside the caller's transaction."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Table, insert
from sqlalchemy.orm import Session

from db.commands.counting import recount
from db.commands.numbering import reserve_ids
from db.commands.preparing import (
    MESSAGE_COLUMNS,
    Prepared,
    PreparedScore,
    message_values,
    prepare_scores,
)
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
    ids = list(reserve_ids(session, ConversationTable, len(prepared)))
    pairs = list(zip(ids, prepared, strict=True))
    insert_rows(
        session,
        ConversationTable,
        [
            {
                **c.columns,
                "id": id,
                "content_hash": c.digest,
                "import_id": import_id,
                "created_at": c.columns["created_at"] or at,
                "updated_at": c.columns["updated_at"] or at,
            }
            for id, c in pairs
        ],
    )
    tags = [{"conversation_id": id, "tag": tag} for id, c in pairs for tag in c.tags]
    insert_rows(session, TagTable, tags)
    raters = _insert_scores(session, _insert_messages(session, pairs))
    reviews = [
        {
            "conversation_id": id,
            "user_id": raters[rater],
            "state": ReviewState.OPEN,
            "scored_turns": turns,
            "updated_at": at,
        }
        for id, c in pairs
        for rater, turns in _scored_turns(c).items()
    ]
    insert_rows(session, ReviewTable, reviews)
    return ids


def _insert_messages(session: Session, pairs: Sequence[tuple[int, Prepared]]) -> list[Target]:
    """Insert the messages of new conversations; return where their scores go."""
    count = sum(len(c.messages) for _, c in pairs)
    message_ids = iter(reserve_ids(session, MessageTable, count))
    rows: list[dict[str, Any]] = []
    targets: list[Target] = []
    for id, c in pairs:
        first = len(rows)
        for position, values in enumerate(c.messages):
            rows.append(
                {
                    "id": next(message_ids),
                    "conversation_id": id,
                    "position": position,
                    **dict(zip(MESSAGE_COLUMNS, values, strict=True)),
                }
            )
        for score in c.scores:
            place = None if score.position is None else rows[first + score.position]["id"]
            targets.append(Target(id, place, score))
    insert_rows(session, MessageTable, rows)
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
    """Return the column values of one message."""
    values = dict(zip(MESSAGE_COLUMNS, message_values(message), strict=True))
    return {"conversation_id": conversation_id, "position": position, **values}


def insert_rows(session: Session, table: type[Base], rows: list[dict[str, Any]]) -> None:
    """Insert many rows with one prepared statement, past the ORM's bookkeeping.

    Columns that are None in every row are left to the database: each costs time in every row.
    """
    if not rows:
        return
    for name in [name for name in rows[0] if all(row[name] is None for row in rows)]:
        for row in rows:
            del row[name]
    session.execute(insert(cast(Table, table.__table__)), rows)


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
    at = now()
    turns: list[dict[str, Any]] = []
    wholes: list[dict[str, Any]] = []
    decided: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for target in targets:
        score, user_id = target.score, raters[target.score.rater]
        entry: dict[str, Any] = {
            "user_id": user_id,
            "value": score.value,
            "note": score.note,
            "created_at": score.at or at,
            "updated_at": score.at or at,
        }
        if target.message_id is None:
            wholes.append({"conversation_id": target.conversation_id, **entry})
        else:
            rows = decided if score.adjudicates else turns
            rows.append({"message_id": target.message_id, **entry})
        events.append(
            {
                "user_id": user_id,
                "conversation_id": target.conversation_id,
                "message_id": target.message_id,
                "new_value": score.value,
                "new_note": score.note,
                "undoable": False,
                "adjudicates": score.adjudicates,
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
