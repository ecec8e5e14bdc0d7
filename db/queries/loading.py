"""Building whole conversations inside a session, with few queries for many of them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.models import (
    AdjudicationTable,
    ConversationTable,
    MessageTable,
    OutcomeTable,
    ScoreTable,
    TagTable,
    UserTable,
)
from db.records import Conversation, Message, Score

_CHUNK = 500

T = TypeVar("T")


def in_chunks(ids: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split ids (or other values) into lists that fit into one statement's parameters."""
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]


def load_conversations(session: Session, ids: Sequence[int]) -> dict[int, Conversation]:
    """Return the conversations that exist among `ids`, by id."""
    found: dict[int, Conversation] = {}
    for chunk in in_chunks(ids):
        tags = load_tags(session, chunk)
        outcomes = _load_outcomes(session, chunk)
        messages = _load_messages(session, chunk)
        rows = session.scalars(select(ConversationTable).where(ConversationTable.id.in_(chunk)))
        for row in rows:
            found[row.id] = Conversation(
                id=row.id,
                title=row.title,
                system=row.system,
                tools=tuple(row.tools or ()),
                source=row.source,
                tags=tuple(tags[row.id]),
                messages=tuple(messages[row.id]),
                outcomes=tuple(outcomes[row.id]),
                created_at=row.created_at,
                updated_at=row.updated_at,
                archived=row.archived,
                group=row.group_key or "",
            )
    return found


def load_tags(session: Session, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the sorted tags of each conversation."""
    tags: dict[int, list[str]] = defaultdict(list)
    for chunk in in_chunks(ids):
        statement = select(TagTable).where(TagTable.conversation_id.in_(chunk))
        for row in session.scalars(statement.order_by(TagTable.tag)):
            tags[row.conversation_id].append(row.tag)
    return tags


def _load_messages(session: Session, ids: Sequence[int]) -> dict[int, list[Message]]:
    scores = _load_scores(session, ids)
    adjudicated = _load_adjudicated(session, ids)
    messages: dict[int, list[Message]] = defaultdict(list)
    statement = select(MessageTable).where(MessageTable.conversation_id.in_(ids))
    for row in session.scalars(statement.order_by(MessageTable.position)):
        messages[row.conversation_id].append(
            Message(
                id=row.id,
                role=row.role,
                content=row.content,
                tool_calls=tuple(row.tool_calls or ()),
                tool_call_id=row.tool_call_id,
                scores=tuple(scores[row.id]),
                adjudicated=adjudicated.get(row.id),
                model=row.model,
                run_id=row.run_id,
                token_ids=None if row.token_ids is None else tuple(row.token_ids),
                logprobs=None if row.logprobs is None else tuple(row.logprobs),
                sampling=row.sampling,
            )
        )
    return messages


def _load_scores(session: Session, ids: Sequence[int]) -> dict[int, list[Score]]:
    scores: dict[int, list[Score]] = defaultdict(list)
    statement = (
        select(ScoreTable, UserTable.name)
        .join(UserTable, UserTable.id == ScoreTable.user_id)
        .join(MessageTable, MessageTable.id == ScoreTable.message_id)
        .where(MessageTable.conversation_id.in_(ids))
        .order_by(UserTable.id)
    )
    for row, rater in session.execute(statement):
        scores[row.message_id].append(
            Score(rater=rater, value=row.value, note=row.note, at=row.updated_at)
        )
    return scores


def _load_adjudicated(session: Session, ids: Sequence[int]) -> dict[int, Score]:
    statement = (
        select(AdjudicationTable, UserTable.name)
        .join(UserTable, UserTable.id == AdjudicationTable.user_id)
        .join(MessageTable, MessageTable.id == AdjudicationTable.message_id)
        .where(MessageTable.conversation_id.in_(ids))
    )
    return {
        row.message_id: Score(rater=decider, value=row.value, note=row.note, at=row.updated_at)
        for row, decider in session.execute(statement)
    }


def _load_outcomes(session: Session, ids: Sequence[int]) -> dict[int, list[Score]]:
    outcomes: dict[int, list[Score]] = defaultdict(list)
    statement = (
        select(OutcomeTable, UserTable.name)
        .join(UserTable, UserTable.id == OutcomeTable.user_id)
        .where(OutcomeTable.conversation_id.in_(ids))
        .order_by(UserTable.id)
    )
    for row, rater in session.execute(statement):
        outcomes[row.conversation_id].append(
            Score(rater=rater, value=row.value, note=row.note, at=row.updated_at)
        )
    return outcomes
