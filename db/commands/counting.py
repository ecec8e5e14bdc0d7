"""Counts that conversations and reviews carry along, so that no queue or table counts again.

Whoever changes messages or scores calls `recount` in the same transaction. It counts anew instead
of adding and subtracting, so that a count can never drift.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from db.enums import ReviewState, Role
from db.models import ConversationTable, MessageTable, ReviewTable, ScoreTable, now
from db.queries.loading import in_chunks
from db.records import Conversation, Message


def recount(
    session: Session, conversation_ids: Collection[int], *, user_id: int | None = None
) -> None:
    """Bring the counts of these conversations, and of those who scored them, up to date.

    Args:
        session: The caller's transaction; what it changed must have been flushed.
        conversation_ids: The conversations whose messages or scores have changed.
        user_id: The only person whose scores have changed; None if there may be more.
    """
    turns = (
        select(func.count())
        .where(
            MessageTable.conversation_id == ConversationTable.id,
            MessageTable.role == Role.ASSISTANT,
        )
        .scalar_subquery()
    )
    scores = (
        select(ScoreTable)
        .join(MessageTable, MessageTable.id == ScoreTable.message_id)
        .where(MessageTable.conversation_id == ConversationTable.id)
        .correlate(ConversationTable)
    )
    for chunk in in_chunks(sorted(conversation_ids)):
        session.execute(
            update(ConversationTable)
            .where(ConversationTable.id.in_(chunk))
            .values(
                turns=turns,
                scored_turns=scores.with_only_columns(
                    func.count(ScoreTable.message_id.distinct())
                ).scalar_subquery(),
                score_count=scores.with_only_columns(func.count()).scalar_subquery(),
                mean_score=scores.with_only_columns(func.avg(ScoreTable.value)).scalar_subquery(),
            )
            .execution_options(synchronize_session=False)
        )
        _recount_reviews(session, chunk, user_id)


def counts_of(conversation: Conversation) -> dict[str, float | None]:
    """Return what `recount` would count for a conversation that is about to be inserted."""
    turns = conversation.assistant_messages
    values = [score.value for message in turns for score in message.scores]
    return {
        "turns": len(turns),
        "scored_turns": sum(bool(message.scores) for message in turns),
        "score_count": len(values),
        "mean_score": sum(values) / len(values) if values else None,
        "uncertainty": uncertainty(turns),
    }


def uncertainty(messages: Sequence[Message]) -> float | None:
    """Return how unsure the sampling policy was of its replies.

    It is their mean negative log-probability per token, in nats; None where no reply came with
    log-probabilities.
    """
    return _surprise([message.logprobs or () for message in messages])


def remeasure(session: Session, conversation_id: int) -> None:
    """Bring a conversation's uncertainty up to date after its messages have changed."""
    stored = session.scalars(
        select(MessageTable.logprobs).where(
            MessageTable.conversation_id == conversation_id,
            MessageTable.role == Role.ASSISTANT,
            MessageTable.logprobs.is_not(None),
        )
    )
    session.execute(
        update(ConversationTable)
        .where(ConversationTable.id == conversation_id)
        .values(uncertainty=_surprise([logprobs or () for logprobs in stored]))
        .execution_options(synchronize_session=False)
    )


def _surprise(replies: Sequence[Sequence[float]]) -> float | None:
    logprobs = [logprob for reply in replies for logprob in reply]
    return -sum(logprobs) / len(logprobs) if logprobs else None


def _recount_reviews(session: Session, chunk: Sequence[int], user_id: int | None) -> None:
    counted = (
        select(MessageTable.conversation_id, ScoreTable.user_id, func.count())
        .join(ScoreTable, ScoreTable.message_id == MessageTable.id)
        .where(MessageTable.conversation_id.in_(chunk))
        .group_by(MessageTable.conversation_id, ScoreTable.user_id)
    )
    kept = select(ReviewTable.conversation_id, ReviewTable.user_id, ReviewTable.scored_turns).where(
        ReviewTable.conversation_id.in_(chunk)
    )
    if user_id is not None:
        counted = counted.where(ScoreTable.user_id == user_id)
        kept = kept.where(ReviewTable.user_id == user_id)
    counts = {(row[0], row[1]): row[2] for row in session.execute(counted)}
    before = {(row[0], row[1]): row[2] for row in session.execute(kept)}
    new = [
        {
            "conversation_id": conversation_id,
            "user_id": rater_id,
            "state": ReviewState.OPEN,
            "scored_turns": count,
            "updated_at": now(),
        }
        for (conversation_id, rater_id), count in counts.items()
        if (conversation_id, rater_id) not in before
    ]
    if new:
        session.execute(insert(ReviewTable), new)
    for (conversation_id, rater_id), count in before.items():
        if count != counts.get((conversation_id, rater_id), 0):
            session.execute(
                update(ReviewTable)
                .where(
                    ReviewTable.conversation_id == conversation_id,
                    ReviewTable.user_id == rater_id,
                )
                .values(scored_turns=counts.get((conversation_id, rater_id), 0))
            )
