"""Reading conversations: the table's rows, the queue's ids, whole conversations."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select

from db.engine import Database
from db.enums import ReviewState, Role
from db.errors import NotFoundError
from db.models import ConversationTable, MessageTable, ReviewTable, ScoreTable, TagTable
from db.queries.loading import in_chunks, load_conversations, load_tags
from db.records import Conversation, ConversationFilter, ConversationRow
from db.text import clean

_SEARCH_CHARACTERS = 1000  # SQLite refuses LIKE patterns of more than 50,000 bytes
_OPENING_CHARACTERS = 80

_turns = (
    select(func.count())
    .where(
        MessageTable.conversation_id == ConversationTable.id,
        MessageTable.role == Role.ASSISTANT,
    )
    .correlate(ConversationTable)
    .scalar_subquery()
)
_scored_turns = (
    select(func.count(ScoreTable.message_id.distinct()))
    .join(MessageTable, MessageTable.id == ScoreTable.message_id)
    .where(MessageTable.conversation_id == ConversationTable.id)
    .correlate(ConversationTable)
    .scalar_subquery()
)
_mean_score = (
    select(func.avg(ScoreTable.value))
    .join(MessageTable, MessageTable.id == ScoreTable.message_id)
    .where(MessageTable.conversation_id == ConversationTable.id)
    .correlate(ConversationTable)
    .scalar_subquery()
)
_opening = (
    select(func.substr(MessageTable.content, 1, _OPENING_CHARACTERS))
    .where(MessageTable.conversation_id == ConversationTable.id, MessageTable.role == Role.USER)
    .order_by(MessageTable.position)
    .limit(1)
    .correlate(ConversationTable)
    .scalar_subquery()
)
_shown_title = func.coalesce(func.nullif(ConversationTable.title, ""), _opening, "")


def count_conversations(db: Database, filter: ConversationFilter, *, user_id: int) -> int:
    """Return how many conversations the filter lets through."""
    matching = _matching(filter, user_id).subquery()
    with db.read_session() as session:
        return session.scalar(select(func.count()).select_from(matching)) or 0


def conversation_ids(db: Database, filter: ConversationFilter, *, user_id: int) -> list[int]:
    """Return the ids of all conversations that the filter lets through, in its order."""
    with db.read_session() as session:
        return list(session.scalars(_matching(filter, user_id).order_by(*_order(filter))))


def conversation_rows(
    db: Database,
    filter: ConversationFilter,
    *,
    user_id: int,
    limit: int | None = 50,
    offset: int = 0,
) -> list[ConversationRow]:
    """Return one page of the conversations table (three queries, whatever the page's size).

    Args:
        db: The database.
        filter: Which conversations, in which order.
        user_id: Whose review state is shown.
        limit: Most rows to return, None for all of them.
        offset: How many matching conversations to leave out first.
    """
    page = _matching(filter, user_id).order_by(*_order(filter)).limit(limit).offset(offset)
    state = and_(
        ReviewTable.conversation_id == ConversationTable.id, ReviewTable.user_id == user_id
    )
    details = select(
        ConversationTable.id,
        _shown_title.label("title"),
        _turns.label("turns"),
        _scored_turns.label("scored_turns"),
        _mean_score.label("mean_score"),
        ConversationTable.source,
        ConversationTable.updated_at,
        ConversationTable.archived,
        func.coalesce(ReviewTable.state, ReviewState.OPEN).label("review"),
    ).outerjoin(ReviewTable, state)
    with db.read_session() as session:
        ids = list(session.scalars(page))
        tags = load_tags(session, ids)
        found = {
            row.id: ConversationRow(
                id=row.id,
                title=row.title,
                turns=row.turns,
                scored_turns=row.scored_turns,
                mean_score=row.mean_score,
                tags=tuple(tags[row.id]),
                source=row.source,
                updated_at=row.updated_at,
                archived=row.archived,
                review=ReviewState(row.review),
            )
            for chunk in in_chunks(ids)
            for row in session.execute(details.where(ConversationTable.id.in_(chunk)))
        }
    return [found[id] for id in ids]


def conversation(db: Database, conversation_id: int) -> Conversation:
    """Return one conversation with its messages, scores, outcomes and tags.

    Raises:
        NotFoundError: if it does not exist (any more).
    """
    return conversations(db, [conversation_id])[0]


def conversations(db: Database, ids: Sequence[int]) -> list[Conversation]:
    """Return whole conversations in the order of `ids`, with a handful of queries for each 500.

    Raises:
        NotFoundError: naming the first that does not exist (any more).
    """
    with db.read_session() as session:
        found = load_conversations(session, ids)
    for id in ids:
        if id not in found:
            raise NotFoundError(
                f"there is no conversation {id}",
                where="conversations",
                remedy="It may have been deleted; go back to the list.",
            )
    return [found[id] for id in ids]


def all_tags(db: Database) -> list[str]:
    """Return every tag in use, sorted."""
    with db.read_session() as session:
        return sorted(session.scalars(select(TagTable.tag).distinct()))


def all_sources(db: Database) -> list[str]:
    """Return every source in use, sorted."""
    with db.read_session() as session:
        return sorted(session.scalars(select(ConversationTable.source).distinct()))


def _matching(filter: ConversationFilter, user_id: int) -> Select[int]:
    statement = select(ConversationTable.id).where(
        ConversationTable.archived.is_(filter.archived), *_scored(filter)
    )
    if text := clean(filter.text[:_SEARCH_CHARACTERS]).strip():
        statement = statement.where(_mentions(text))
    for tag in filter.tags:
        statement = statement.where(
            ConversationTable.id.in_(select(TagTable.conversation_id).where(TagTable.tag == tag))
        )
    if filter.sources:
        statement = statement.where(ConversationTable.source.in_(filter.sources))
    if filter.review is not None:
        statement = statement.where(_in_state(filter.review, user_id))
    return statement


def _scored(filter: ConversationFilter) -> list[ColumnElement[bool]]:
    match filter.scored:
        case "any":
            return []
        case "none":
            return [_scored_turns == 0]
        case "partly":
            return [_scored_turns > 0, _scored_turns < _turns]
        case "fully":
            return [_scored_turns > 0, _scored_turns == _turns]


def _mentions(text: str) -> ColumnElement[bool]:
    in_message = (
        select(MessageTable.id)
        .where(
            MessageTable.conversation_id == ConversationTable.id,
            MessageTable.content.icontains(text, autoescape=True),
        )
        .exists()
    )
    return or_(
        ConversationTable.title.icontains(text, autoescape=True),
        ConversationTable.system.icontains(text, autoescape=True),
        in_message,
    )


def _in_state(state: ReviewState, user_id: int) -> ColumnElement[bool]:
    mine = select(ReviewTable.conversation_id).where(ReviewTable.user_id == user_id)
    if state is ReviewState.OPEN:  # no row means open
        return ConversationTable.id.not_in(mine.where(ReviewTable.state != ReviewState.OPEN))
    return ConversationTable.id.in_(mine.where(ReviewTable.state == state))


def _order(filter: ConversationFilter) -> list[ColumnElement[Any]]:
    by_id: ColumnElement[Any] = ConversationTable.id.expression
    match filter.order:
        case "newest":
            return [by_id.desc()]
        case "oldest":
            return [by_id]
        case "title":
            return [func.lower(_shown_title), by_id]
        case "least_scored":
            share = case((_turns == 0, 2.0), else_=_scored_turns * 1.0 / _turns)
            return [share, by_id]
