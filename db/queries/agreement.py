"""How far people agree who scored the same turns; archived conversations are left out."""

import random
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Integer, Select, Subquery, cast, func, select
from sqlalchemy.orm import aliased

from db.engine import Database
from db.enums import Role
from db.models import (
    AdjudicationTable,
    ConversationTable,
    MessageTable,
    ScoreTable,
    UserTable,
)
from db.queries.loading import in_chunks
from db.records.agreement import (
    AgreementFigures,
    RaterPair,
    RatersOfTurns,
    Rating,
    SharedTurn,
    SpreadCount,
)
from db.records.insight import STEPS

_REPLY_CHARACTERS = 120


def agreement_figures(db: Database, *, sample_turns: int) -> AgreementFigures:
    """Return all figures of agreement, with the scores of at most so many shared turns."""
    return AgreementFigures(
        ratings=tuple(ratings_sample(db, turns=sample_turns)),
        coverage=tuple(raters_of_turns(db)),
        spreads=tuple(spreads(db)),
        pairs=tuple(rater_pairs(db)),
    )


def raters_of_turns(db: Database) -> list[RatersOfTurns]:
    """Return how many turns have been scored by 0, 1, 2, ... people; numbers without any left out."""
    raters = (
        select(func.count(ScoreTable.user_id).label("raters"))
        .select_from(MessageTable)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .outerjoin(ScoreTable, ScoreTable.message_id == MessageTable.id)
        .where(MessageTable.role == Role.ASSISTANT, ConversationTable.archived.is_(False))
        .group_by(MessageTable.id)
        .subquery()
    )
    statement = (
        select(raters.c.raters, func.count()).group_by(raters.c.raters).order_by(raters.c.raters)
    )
    with db.read_session() as session:
        rows = session.execute(statement).all()
        return [RatersOfTurns(raters=number, turns=turns) for number, turns in rows]


def ratings_sample(db: Database, *, turns: int) -> list[Rating]:
    """Return all scores of at most so many shared turns: all of them, or the same chance sample."""
    shared = _shared()
    with db.read_session() as session:
        ids = sorted(session.scalars(select(shared.c.message_id)))
        if len(ids) > turns:
            ids = random.Random(0).sample(ids, turns)
        return [
            Rating(message_id=message_id, user_id=user_id, value=value)
            for chunk in in_chunks(ids)
            for message_id, user_id, value in session.execute(
                select(ScoreTable.message_id, ScoreTable.user_id, ScoreTable.value).where(
                    ScoreTable.message_id.in_(chunk)
                )
            )
        ]


def spreads(db: Database) -> list[SpreadCount]:
    """Return how many shared turns have each spread, in steps of a twentieth."""
    shared = _shared()
    step = cast(func.round((shared.c.high - shared.c.low) * STEPS), Integer).label("step")
    statement = select(step, func.count()).group_by(step).order_by(step)
    with db.read_session() as session:
        rows = session.execute(statement).all()
        return [SpreadCount(spread=number / STEPS, turns=turns) for number, turns in rows]


def rater_pairs(db: Database) -> list[RaterPair]:
    """Return how each two people scored the turns that both of them scored, by their names."""
    one, other = aliased(ScoreTable), aliased(ScoreTable)
    first, second = aliased(UserTable), aliased(UserTable)
    pairs = (
        select(
            one.user_id.label("first_id"),
            other.user_id.label("second_id"),
            func.count().label("turns"),
            func.avg(func.abs(one.value - other.value)).label("apart"),
            func.avg(one.value - other.value).label("higher"),
        )
        .join(other, other.message_id == one.message_id)
        .join(MessageTable, MessageTable.id == one.message_id)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .where(one.user_id < other.user_id, ConversationTable.archived.is_(False))
        .group_by(one.user_id, other.user_id)
        .subquery()
    )
    statement = (
        select(first.name, second.name, pairs.c.turns, pairs.c.apart, pairs.c.higher)
        .join(first, first.id == pairs.c.first_id)
        .join(second, second.id == pairs.c.second_id)
        .order_by(first.name, second.name)
    )
    with db.read_session() as session:
        return [
            RaterPair(first=a, second=b, turns=turns, apart=apart, higher=higher)
            for a, b, turns, apart, higher in session.execute(statement)
        ]


def count_shared_turns(db: Database, *, least_spread: float, undecided: bool) -> int:
    """Return how many turns `shared_turns` would return without a limit."""
    statement = _listed(_shared(), least_spread=least_spread, undecided=undecided)
    with db.read_session() as session:
        return session.scalar(select(func.count()).select_from(statement.subquery())) or 0


def shared_turns(
    db: Database, *, least_spread: float, undecided: bool, limit: int, offset: int = 0
) -> list[SharedTurn]:
    """Return the turns that people disagree on, those with the widest spread first.

    Args:
        db: The database.
        least_spread: Leaves out turns whose scores are closer together.
        undecided: Whether to leave out those for which a score was decided.
        limit: Most turns to return.
        offset: How many to leave out first.
    """
    shared = _shared()
    spread = shared.c.high - shared.c.low
    page = _listed(shared, least_spread=least_spread, undecided=undecided)
    page = page.order_by(spread.desc(), shared.c.message_id).limit(limit).offset(offset)
    with db.read_session() as session:
        return [SharedTurn(**row) for row in session.execute(page).mappings()]


def _shared() -> Subquery:
    """Return number, lowest, highest and mean score of each turn that several people scored."""
    return (
        select(
            ScoreTable.message_id,
            func.count().label("raters"),
            func.min(ScoreTable.value).label("low"),
            func.max(ScoreTable.value).label("high"),
            func.avg(ScoreTable.value).label("mean"),
        )
        .join(MessageTable, MessageTable.id == ScoreTable.message_id)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .where(ConversationTable.archived.is_(False))
        .group_by(ScoreTable.message_id)
        .having(func.count() > 1)
        .subquery()
    )


def _listed(
    shared: Subquery, *, least_spread: float, undecided: bool
) -> Select[tuple[object, ...]]:
    earlier = aliased(MessageTable)
    turn: ColumnElement[int] = (
        select(func.count())
        .where(
            earlier.conversation_id == MessageTable.conversation_id,
            earlier.position < MessageTable.position,
            earlier.role == Role.ASSISTANT,
        )
        .correlate(MessageTable)
        .scalar_subquery()
    )
    columns: Sequence[ColumnElement[object]] = [
        MessageTable.conversation_id.label("conversation_id"),
        shared.c.message_id,
        ConversationTable.title.label("title"),
        turn.label("turn"),
        func.substr(MessageTable.content, 1, _REPLY_CHARACTERS).label("reply"),
        shared.c.raters,
        shared.c.low,
        shared.c.high,
        shared.c.mean,
        AdjudicationTable.value.label("adjudicated"),
    ]
    rounding = 1e-9  # 0.7 - 0.2 is a little less than 0.5
    statement = (
        select(*columns)
        .join(MessageTable, MessageTable.id == shared.c.message_id)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .outerjoin(AdjudicationTable, AdjudicationTable.message_id == shared.c.message_id)
        .where(shared.c.high - shared.c.low >= least_spread - rounding)
    )
    return statement.where(AdjudicationTable.value.is_(None)) if undecided else statement
