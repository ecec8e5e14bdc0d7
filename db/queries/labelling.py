"""What labelling asks: where to go on, how it goes, and what was changed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from statistics import median

from sqlalchemy import ColumnElement, and_, func, select

from db.engine import Database
from db.enums import ReviewState, Role
from db.models import (
    ConversationTable,
    EventTable,
    MessageTable,
    PendingNoteTable,
    ReviewTable,
    ScoreTable,
    now,
)
from db.queries.filtering import matching
from db.queries.loading import in_chunks
from db.records import ConversationFilter, ScoreEvent
from db.records.labels import OwnTurn, Pace, QueueCounts

PAUSE_S = 300.0
"""Two scores further apart than this had a pause between them."""

_PACE_SCORES = 60
"""So many of the latest scores tell the pace."""


def is_first_hand(undoes_id: ColumnElement[int | None]) -> ColumnElement[bool]:
    """Return the condition that a change is neither an undo nor a redo.

    SQLite would answer `IS NULL` with the index of a column that nearly every row leaves empty;
    an expression leads it to the user's own rows.
    """
    return func.coalesce(undoes_id, 0) == 0


def has_turns(db: Database) -> bool:
    """Return whether there is a conversation with an assistant turn."""
    some = select(ConversationTable.id).where(
        ConversationTable.archived.is_(False), ConversationTable.turns > 0
    )
    with db.read_session() as session:
        return session.scalar(some.limit(1)) is not None


def next_unscored(
    db: Database, *, user_id: int, ids: Sequence[int] | None = None
) -> tuple[int, int] | None:
    """Return the first turn that this user has not scored.

    Archived conversations and those that the user has marked done or skipped are left out.

    Args:
        db: The database.
        user_id: Whose scores count.
        ids: The conversations to look at, in this order; None for all, oldest first.

    Returns:
        (conversation id, message id), or None if everything is scored.
    """
    mine = and_(ReviewTable.conversation_id == ConversationTable.id, ReviewTable.user_id == user_id)
    unfinished = (
        select(ConversationTable.id)
        .outerjoin(ReviewTable, mine)
        .where(
            ConversationTable.archived.is_(False),
            ConversationTable.turns > func.coalesce(ReviewTable.scored_turns, 0),
            func.coalesce(ReviewTable.state, ReviewState.OPEN).not_in(
                (ReviewState.DONE, ReviewState.SKIPPED)
            ),
        )
    )
    with db.read_session() as session:
        conversation_id = None
        if ids is None:
            first = unfinished.order_by(ConversationTable.id).limit(1)
            conversation_id = session.scalar(first)
        else:
            for chunk in in_chunks(ids):
                found = set(session.scalars(unfinished.where(ConversationTable.id.in_(chunk))))
                conversation_id = next((id for id in chunk if id in found), None)
                if conversation_id is not None:
                    break
        if conversation_id is None:
            return None
        scored = (
            select(ScoreTable.message_id)
            .where(ScoreTable.message_id == MessageTable.id, ScoreTable.user_id == user_id)
            .exists()
        )
        message_id = session.scalar(
            select(MessageTable.id)
            .where(
                MessageTable.conversation_id == conversation_id,
                MessageTable.role == Role.ASSISTANT,
                ~scored,
            )
            .order_by(MessageTable.position)
            .limit(1)
        )
    return None if message_id is None else (conversation_id, message_id)


def queue_counts(db: Database, filter: ConversationFilter, *, user_id: int) -> QueueCounts:
    """Return how the conversations that a filter lets through are spread over this user's queues.

    The filter's own review state does not count: all four are told.
    """
    mine = and_(ReviewTable.conversation_id == ConversationTable.id, ReviewTable.user_id == user_id)
    state = func.coalesce(ReviewTable.state, ReviewState.OPEN)
    statement = (
        matching(replace(filter, review=None), user_id)
        .outerjoin(ReviewTable, mine)
        .with_only_columns(
            state,
            func.count(),
            func.sum(ConversationTable.turns),
            func.sum(func.coalesce(ReviewTable.scored_turns, 0)),
        )
        .group_by(state)
    )
    conversations = dict.fromkeys(ReviewState, 0)
    turns = scored = left = 0
    with db.read_session() as session:
        for name, count, all_turns, own in session.execute(statement):
            conversations[ReviewState(name)] = count
            turns += all_turns
            scored += own
            if ReviewState(name) is ReviewState.OPEN:
                left = all_turns - own
    return QueueCounts(conversations=conversations, turns=turns, scored_turns=scored, left=left)


def review_state(db: Database, *, user_id: int, conversation_id: int) -> ReviewState:
    """Return where the conversation stands in this user's queue."""
    with db.read_session() as session:
        row = session.get(ReviewTable, (conversation_id, user_id))
        return ReviewState.OPEN if row is None else row.state


def edited_at(db: Database, conversation_id: int) -> datetime | None:
    """Return when a conversation's text was last changed, None if it does not exist (any more)."""
    statement = select(ConversationTable.updated_at).where(ConversationTable.id == conversation_id)
    with db.read_session() as session:
        return session.scalar(statement)


def last_place(db: Database, *, user_id: int) -> int | None:
    """Return the conversation in which this user made their latest change, None if none yet."""
    statement = (
        select(EventTable.conversation_id)
        .where(EventTable.user_id == user_id, EventTable.undoable, ~EventTable.adjudicates)
        .order_by(EventTable.id.desc())
        .limit(1)
    )
    with db.read_session() as session:
        return session.scalar(statement)


def own_turns(db: Database, *, user_id: int, conversation_id: int) -> tuple[OwnTurn, ...]:
    """Return the assistant turns of a conversation, in order, with this user's scores."""
    mine = and_(ScoreTable.message_id == MessageTable.id, ScoreTable.user_id == user_id)
    statement = (
        select(MessageTable.id, ScoreTable.value)
        .outerjoin(ScoreTable, mine)
        .where(MessageTable.conversation_id == conversation_id, MessageTable.role == Role.ASSISTANT)
        .order_by(MessageTable.position)
    )
    with db.read_session() as session:
        rows = session.execute(statement)
        return tuple(OwnTurn(message_id=id, value=value) for id, value in rows)


def pending_notes(db: Database, *, user_id: int, conversation_id: int) -> dict[int, str]:
    """Return this user's notes that wait for a score, by message."""
    statement = (
        select(PendingNoteTable)
        .join(MessageTable, MessageTable.id == PendingNoteTable.message_id)
        .where(PendingNoteTable.user_id == user_id, MessageTable.conversation_id == conversation_id)
    )
    with db.read_session() as session:
        return {row.message_id: row.note for row in session.scalars(statement)}


def pace(db: Database, *, user_id: int, since: datetime) -> Pace:
    """Return how many turns this user has scored since a moment, and how fast of late."""
    by_hand = [
        EventTable.user_id == user_id,
        EventTable.new_value.is_not(None),
        EventTable.undoable,
        is_first_hand(EventTable.undoes_id.expression),
        ~EventTable.adjudicates,
    ]
    latest = (
        select(EventTable.at)
        .where(*by_hand, EventTable.message_id.is_not(None))
        .order_by(EventTable.id.desc())
        .limit(_PACE_SCORES)
    )
    today = select(func.count(EventTable.message_id.distinct())).where(
        *by_hand, EventTable.at >= since
    )
    with db.read_session() as session:
        times = list(session.scalars(latest))
        count = session.scalar(today) or 0
    recent = [at for at in times if (now() - at).total_seconds() < 24 * 3600]
    gaps = [(a - b).total_seconds() for a, b in pairwise(recent)]
    working = [gap for gap in gaps if 0 < gap <= PAUSE_S]
    return Pace(
        since=since, scored=count, seconds_per_turn=median(working) if len(working) >= 5 else None
    )


def score_events(
    db: Database,
    *,
    conversation_id: int | None = None,
    user_id: int | None = None,
    limit: int = 100,
) -> list[ScoreEvent]:
    """Return the latest score changes, newest first."""
    statement = (
        select(EventTable)
        .where(EventTable.new_state.is_(None))
        .order_by(EventTable.id.desc())
        .limit(limit)
    )
    if conversation_id is not None:
        statement = statement.where(EventTable.conversation_id == conversation_id)
    if user_id is not None:
        statement = statement.where(EventTable.user_id == user_id)
    with db.read_session() as session:
        return [score_event(row) for row in session.scalars(statement)]


def score_event(row: EventTable) -> ScoreEvent:
    """Return the record of one entry of the log."""
    return ScoreEvent(
        id=row.id,
        user_id=row.user_id,
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        old_value=row.old_value,
        new_value=row.new_value,
        old_note=row.old_note,
        new_note=row.new_note,
        at=row.at,
        adjudicates=row.adjudicates,
        old_state=row.old_state,
        new_state=row.new_state,
        is_undo=row.is_undo,
    )
