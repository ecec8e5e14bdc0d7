"""What all scores together say; archived conversations are left out.

Everything is added up by the database: what comes back has the size of a chart, not of the data.
"""

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Subquery,
    case,
    cast,
    func,
    select,
)

from db.engine import Database
from db.enums import Role
from db.models import (
    ConversationTable,
    EventTable,
    MessageTable,
    ScoreTable,
    TagTable,
    UserTable,
)
from db.queries.loading import in_chunks
from db.records.insight import (
    STEPS,
    Insight,
    LengthBand,
    LengthBias,
    PositionSummary,
    RaterSummary,
    ScoreCount,
    ScoredCounts,
    TagSummary,
)

BANDS = 10
"""Into so many parts of equal size replies are divided by their length."""


def insight_figures(db: Database) -> Insight:
    """Return what all scores together say."""
    return Insight(
        counts=tuple(score_counts(db)),
        raters=tuple(rater_summaries(db)),
        tags=tuple(tag_summaries(db)),
        positions=tuple(position_summaries(db)),
        conversations=scored_counts(db),
        length=length_bias(db),
    )


def score_counts(db: Database) -> list[ScoreCount]:
    """Return how often each person gave each score, in steps of a twentieth."""
    step = cast(func.round(ScoreTable.value * STEPS), Integer).label("step")
    statement = (
        select(UserTable.name, step, func.count())
        .select_from(ScoreTable)
        .join(UserTable, UserTable.id == ScoreTable.user_id)
        .where(_in_use(ScoreTable.message_id))
        .group_by(UserTable.name, step)
        .order_by(UserTable.name, step)
    )
    with db.read_session() as session:
        return [
            ScoreCount(rater=name, step=number, count=count)
            for name, number, count in session.execute(statement)
        ]


def rater_summaries(db: Database) -> list[RaterSummary]:
    """Return number, mean and standard deviation of each person's scores, most scores first."""
    value = ScoreTable.value
    count = func.count().label("scores")
    statement = (
        select(UserTable.name, count, func.avg(value), func.avg(value * value))
        .select_from(ScoreTable)
        .join(UserTable, UserTable.id == ScoreTable.user_id)
        .where(_in_use(ScoreTable.message_id))
        .group_by(UserTable.name)
        .order_by(count.desc(), UserTable.name)
    )
    with db.read_session() as session:
        return [
            RaterSummary(rater=name, scores=n, mean=mean, deviation=_deviation(n, mean, square))
            for name, n, mean, square in session.execute(statement)
        ]


def tag_summaries(db: Database) -> list[TagSummary]:
    """Return what the turns of each tag's conversations were scored, most conversations first."""
    turns = _turns()
    conversations = func.count(ConversationTable.id.distinct()).label("conversations")
    tag = func.coalesce(TagTable.tag, "").label("tag")
    statement = (
        select(
            tag,
            conversations,
            func.count(turns.c.id),
            func.count(turns.c.mean),
            func.avg(turns.c.mean),
        )
        .select_from(ConversationTable)
        .outerjoin(TagTable, TagTable.conversation_id == ConversationTable.id)
        .outerjoin(turns, turns.c.conversation_id == ConversationTable.id)
        .where(ConversationTable.archived.is_(False))
        .group_by(tag)
        .order_by(conversations.desc(), tag)
    )
    with db.read_session() as session:
        return [
            TagSummary(tag=name, conversations=number, turns=all, scored_turns=scored, mean=mean)
            for name, number, all, scored, mean in session.execute(statement)
        ]


def position_summaries(db: Database) -> list[PositionSummary]:
    """Return what turns were scored at each place of their conversations, in order."""
    turns = _turns()
    statement = (
        select(turns.c.turn, func.count(), func.count(turns.c.mean), func.avg(turns.c.mean))
        .group_by(turns.c.turn)
        .order_by(turns.c.turn)
    )
    with db.read_session() as session:
        return [
            PositionSummary(turn=turn, turns=all, scored_turns=scored, mean=mean)
            for turn, all, scored, mean in session.execute(statement)
        ]


def scored_counts(db: Database) -> ScoredCounts:
    """Return how many conversations are scored not at all, in part and in full.

    Those without an assistant turn have nothing to score and are left out.
    """
    turns, scored = ConversationTable.turns, ConversationTable.scored_turns

    def number(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)

    statement = select(
        number(scored == 0), number((scored > 0) & (scored < turns)), number(scored == turns)
    ).where(ConversationTable.archived.is_(False), turns > 0)
    with db.read_session() as session:
        none, partly, fully = session.execute(statement).one()
    return ScoredCounts(none=none, partly=partly, fully=fully)


def length_bias(db: Database) -> LengthBias:
    """Return how the length of a reply and its mean score go together.

    Spearman's correlation is that of the ranks, equal ones sharing their mean rank; so neither
    one giant reply nor the scale of the scores decides it.
    """
    turns = _turns()
    scored = select(turns.c.chars, turns.c.mean).where(turns.c.mean.is_not(None)).subquery()
    banded = select(
        scored.c.chars, scored.c.mean, func.ntile(BANDS).over(order_by=scored.c.chars).label("band")
    ).subquery()
    bands = (
        select(
            func.min(banded.c.chars).label("shortest"),
            func.max(banded.c.chars).label("longest"),
            func.avg(banded.c.chars).label("mean_chars"),
            func.count().label("replies"),
            func.avg(banded.c.mean).label("mean"),
        )
        .group_by(banded.c.band)
        .order_by(banded.c.band)
    )
    ranks = select(
        _mean_rank(scored.c.chars).label("x"), _mean_rank(scored.c.mean).label("y")
    ).subquery()
    x, y = ranks.c.x, ranks.c.y
    sums = select(
        func.count(), func.avg(x), func.avg(y), func.avg(x * y), func.avg(x * x), func.avg(y * y)
    )
    with db.read_session() as session:
        found = [
            LengthBand(
                shortest=row.shortest,
                longest=row.longest,
                mean_chars=float(row.mean_chars),
                replies=row.replies,
                mean=row.mean,
            )
            for row in session.execute(bands)
        ]
        replies, *means = session.execute(sums).one()
    return LengthBias(
        bands=tuple(found),
        replies=replies,
        correlation=_correlation(*(float(mean) for mean in means)) if replies else None,
    )


def data_version(db: Database) -> tuple[int, ...]:
    """Return numbers that change with everything that agreement and insight are made of.

    Decisions on turns are no part of either.
    """
    parts = (
        select(EventTable.id)
        .where(~EventTable.adjudicates)
        .order_by(EventTable.id.desc())
        .limit(1),
        select(func.coalesce(func.max(MessageTable.id), 0)),
        select(func.count()).select_from(TagTable),
        select(func.count()).select_from(ConversationTable),
        select(func.count()).where(ConversationTable.archived),
        select(func.count()).select_from(UserTable),
    )
    with db.read_session() as session:
        return tuple(session.scalar(part) or 0 for part in parts)


def texts(db: Database, ids: Sequence[int]) -> dict[int, str]:
    """Return what was said in each conversation, its messages one after the other."""
    found: dict[int, list[str]] = {id: [] for id in ids}
    with db.read_session() as session:
        for chunk in in_chunks(ids):
            statement = (
                select(MessageTable.conversation_id, MessageTable.content)
                .where(MessageTable.conversation_id.in_(chunk))
                .order_by(MessageTable.conversation_id, MessageTable.position)
            )
            for id, content in session.execute(statement):
                found[id].append(content)
    return {id: "\n".join(contents) for id, contents in found.items()}


def _turns() -> Subquery:
    """Return each assistant turn with its number, its length and the mean of its scores."""
    given = (
        select(ScoreTable.message_id, func.avg(ScoreTable.value).label("mean"))
        .group_by(ScoreTable.message_id)
        .subquery()
    )
    number = func.row_number().over(
        partition_by=MessageTable.conversation_id, order_by=MessageTable.position
    )
    return (
        select(
            MessageTable.id,
            MessageTable.conversation_id,
            (number - 1).label("turn"),
            func.length(MessageTable.content).label("chars"),
            given.c.mean,
        )
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .outerjoin(given, given.c.message_id == MessageTable.id)
        .where(MessageTable.role == Role.ASSISTANT, ConversationTable.archived.is_(False))
        .subquery()
    )


def _in_use(message_id: Any) -> ColumnElement[bool]:
    """Return the condition that a message belongs to a conversation outside the archive."""
    return message_id.in_(
        select(MessageTable.id)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .where(ConversationTable.archived.is_(False))
    )


def _mean_rank(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return each row's rank from 1, equal values sharing the mean of theirs."""
    up, down = func.rank().over(order_by=column), func.rank().over(order_by=column.desc())
    return (up + func.count().over() + 1 - down) / 2.0


def _deviation(count: int, mean: float, mean_square: float) -> float | None:
    """Return the standard deviation (n - 1); None for a single value."""
    if count < 2:
        return None
    return math.sqrt(max(0.0, mean_square - mean * mean) * count / (count - 1))


def _correlation(
    mean_x: float, mean_y: float, mean_xy: float, mean_xx: float, mean_yy: float
) -> float | None:
    """Return Pearson's correlation from means; None where x or y does not vary."""
    variance_x, variance_y = mean_xx - mean_x * mean_x, mean_yy - mean_y * mean_y
    if variance_x <= 0 or variance_y <= 0:
        return None
    found = (mean_xy - mean_x * mean_y) / math.sqrt(variance_x * variance_y)
    return max(-1.0, min(1.0, found))
