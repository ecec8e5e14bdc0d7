"""Which conversations a filter lets through, and in which order, as SQL."""

from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, or_, select

from db.enums import ReviewState, Role
from db.models import (
    AssignmentTable,
    ConversationTable,
    MessageTable,
    ReviewTable,
    TagTable,
    UserTable,
)
from db.queries.assigning import is_assigned_to
from db.records import ConversationFilter
from db.text import clean

_SEARCH_CHARACTERS = 1000  # SQLite refuses LIKE patterns of more than 50,000 bytes
_OPENING_CHARACTERS = 80

_opening = (
    select(func.substr(MessageTable.content, 1, _OPENING_CHARACTERS))
    .where(MessageTable.conversation_id == ConversationTable.id, MessageTable.role == Role.USER)
    .order_by(MessageTable.position)
    .limit(1)
    .correlate(ConversationTable)
    .scalar_subquery()
)
shown_title = func.coalesce(func.nullif(ConversationTable.title, ""), _opening, "")
"""The title, or the beginning of the first user message where there is none."""


def matching(filter: ConversationFilter, user_id: int) -> Select[int]:
    """Return the ids of what the filter lets through for this person, in no order."""
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
    if filter.run_id is not None:
        sampled = select(MessageTable.conversation_id).where(MessageTable.run_id == filter.run_id)
        statement = statement.where(ConversationTable.id.in_(sampled))
    if filter.review is not None:
        statement = statement.where(_in_state(filter.review, user_id))
    if filter.raters_wanted is not None:
        statement = statement.where(*_offered(filter.raters_wanted, user_id))
    return statement


def ordered(filter: ConversationFilter) -> list[ColumnElement[Any]]:
    """Return the columns to order by; "random" is for the caller to shuffle."""
    by_id: ColumnElement[Any] = ConversationTable.id.expression
    match filter.order:
        case "newest":
            return [by_id.desc()]
        case "oldest" | "random":
            return [by_id]
        case "title":
            return [func.lower(shown_title), by_id]
        case "least_scored":
            turns = ConversationTable.turns
            each = case((turns == 0, 1e9), else_=ConversationTable.score_count * 1.0 / turns)
            return [each, by_id]
        case "uncertain":
            return [ConversationTable.uncertainty.desc().nulls_last(), by_id]


def _scored(filter: ConversationFilter) -> list[ColumnElement[bool]]:
    turns, scored = ConversationTable.turns, ConversationTable.scored_turns
    conditions: list[ColumnElement[bool]] = []
    match filter.scored:
        case "any":
            pass
        case "none":
            conditions.append(scored == 0)
        case "partly":
            conditions += [scored > 0, scored < turns]
        case "fully":
            conditions += [scored > 0, scored == turns]
    if filter.score_range is not None:
        conditions.append(ConversationTable.mean_score.between(*filter.score_range))
    if filter.rater:
        by_rater = (
            select(ReviewTable.conversation_id)
            .join(UserTable, UserTable.id == ReviewTable.user_id)
            .where(UserTable.name == filter.rater, ReviewTable.scored_turns > 0)
        )
        conditions.append(ConversationTable.id.in_(by_rater))
    if filter.least_raters:
        conditions.append(ConversationTable.id.in_(_scored_by_many(filter.least_raters)))
    if filter.flagged:
        flagged = select(ReviewTable.conversation_id).where(
            ReviewTable.state == ReviewState.FLAGGED
        )
        conditions.append(ConversationTable.id.in_(flagged))
    return conditions


def _scored_by_many(least: int) -> Select[int]:
    return (
        select(ReviewTable.conversation_id)
        .where(ReviewTable.scored_turns > 0)
        .group_by(ReviewTable.conversation_id)
        .having(func.count() >= least)
    )


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


def _offered(raters_wanted: int, user_id: int) -> list[ColumnElement[bool]]:
    """Return when a conversation waits for this person.

    It has a turn; it is assigned to them, or they have begun it, or it is assigned to nobody and
    fewer others than wanted have finished it.
    """
    begun = select(ReviewTable.conversation_id).where(
        ReviewTable.user_id == user_id,
        or_(ReviewTable.scored_turns > 0, ReviewTable.state != ReviewState.OPEN),
    )
    finished = (
        select(ReviewTable.conversation_id)
        .join(ConversationTable, ConversationTable.id == ReviewTable.conversation_id)
        .where(
            ReviewTable.user_id != user_id,
            or_(
                ReviewTable.state == ReviewState.DONE,
                ReviewTable.scored_turns >= ConversationTable.turns,
            ),
        )
        .group_by(ReviewTable.conversation_id)
        .having(func.count() >= raters_wanted)
        .correlate(None)
    )
    free = ConversationTable.id.not_in(
        select(AssignmentTable.conversation_id)
    ) & ConversationTable.id.not_in(finished)
    return [
        ConversationTable.turns > 0,
        or_(is_assigned_to(user_id), ConversationTable.id.in_(begun), free),
    ]
