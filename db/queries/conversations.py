"""Reading conversations: the table's rows, the queue's ids, whole conversations."""

from collections.abc import Collection, Sequence
from zlib import crc32

from sqlalchemy import and_, func, select

from db.engine import Database
from db.enums import ReviewState
from db.errors import NotFoundError
from db.models import (
    ConversationTable,
    MessageTable,
    ReviewTable,
    RunTable,
    ScoreTable,
    TagTable,
    UserTable,
)
from db.queries.filtering import matching, ordered, shown_title
from db.queries.loading import in_chunks, load_conversations, load_tags
from db.records import Conversation, ConversationFilter, ConversationRow, FilterOptions


def count_conversations(db: Database, filter: ConversationFilter, *, user_id: int) -> int:
    """Return how many conversations the filter lets through."""
    found = matching(filter, user_id).subquery()
    with db.read_session() as session:
        return session.scalar(select(func.count()).select_from(found)) or 0


def conversation_ids(db: Database, filter: ConversationFilter, *, user_id: int) -> list[int]:
    """Return the ids of all conversations that the filter lets through, in its order."""
    with db.read_session() as session:
        ids = list(session.scalars(matching(filter, user_id).order_by(*ordered(filter))))
    return _shuffled(ids, user_id) if filter.order == "random" else ids


def matching_ids(
    db: Database, filter: ConversationFilter, ids: Collection[int], *, user_id: int
) -> set[int]:
    """Return which of these conversations the filter lets through."""
    found: set[int] = set()
    with db.read_session() as session:
        for chunk in in_chunks(sorted(ids)):
            statement = matching(filter, user_id).where(ConversationTable.id.in_(chunk))
            found.update(session.scalars(statement))
    return found


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
    page = matching(filter, user_id).order_by(*ordered(filter)).limit(limit).offset(offset)
    state = and_(
        ReviewTable.conversation_id == ConversationTable.id, ReviewTable.user_id == user_id
    )
    details = select(
        ConversationTable.id,
        shown_title.label("title"),
        ConversationTable.turns,
        ConversationTable.scored_turns,
        ConversationTable.mean_score,
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


def filter_options(db: Database) -> FilterOptions:
    """Return what there is to filter conversations by."""
    sampled = select(MessageTable.id).where(MessageTable.run_id == RunTable.id).exists()
    runs = select(RunTable.id, RunTable.name).where(sampled).order_by(RunTable.id.desc())
    scored = select(ScoreTable.message_id).where(ScoreTable.user_id == UserTable.id).exists()
    with db.read_session() as session:
        return FilterOptions(
            tags=tuple(sorted(session.scalars(select(TagTable.tag).distinct()))),
            sources=tuple(sorted(session.scalars(select(ConversationTable.source).distinct()))),
            runs=tuple((id, name) for id, name in session.execute(runs)),
            raters=tuple(session.scalars(select(UserTable.name).where(scored).order_by("name"))),
        )


def _shuffled(ids: Sequence[int], user_id: int) -> list[int]:
    """Return ids in an order that looks random, is another for each person, and stays as it is."""
    return sorted(ids, key=lambda id: crc32(b"%d.%d" % (user_id, id)))
