"""What a chat leaves to be labelled: its conversations, and what a vote says of their last turns."""

from collections.abc import Sequence
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.adding import add_in, find_present
from db.commands.changing import apply, change_score
from db.commands.counting import recount
from db.commands.preparing import prepare
from db.engine import Database
from db.enums import ReviewState, Role
from db.errors import DataError
from db.models import EventTable, MessageTable, ReviewTable
from db.records import Conversation
from db.scoring import check_score


def keep_chat(
    db: Database,
    conversations: Sequence[Conversation],
    *,
    user_id: int,
    last_scores: Sequence[float] = (),
) -> tuple[int, ...]:
    """Store conversations that somebody had with a model; words that are there are not stored twice.

    Args:
        db: The database.
        conversations: What was said; nobody has scored it yet.
        user_id: Who had them.
        last_scores: This person's score of the last reply of each, by a vote. The conversations
            are then done in their queue: the vote is what they had to say.

    Returns:
        Where each conversation is, in the given order.

    Raises:
        DataError: if one cannot be stored as it is, carries scores, or a value is no score.
    """
    for value in last_scores:
        check_score(value, where="vote")
    if any(m.scores or m.adjudicated for c in conversations for m in c.messages):
        raise DataError("a chat carries no scores", where="chat", remedy="Score it afterwards.")
    prepared = [prepare(conversation) for conversation in conversations]
    with db.session() as session:
        add_in(session, prepared)
        present = find_present(session, [each.digest for each in prepared])
        ids = tuple(present[each.digest].id for each in prepared)
        if last_scores:
            batch = uuid4().hex  # one undo takes the vote back
            for conversation_id, value in zip(ids, last_scores, strict=True):
                _score_last(session, user_id, conversation_id, value, batch)
    return ids


def _score_last(
    session: Session, user_id: int, conversation_id: int, value: float, batch: str
) -> None:
    last = session.scalars(
        select(MessageTable)
        .where(
            MessageTable.conversation_id == conversation_id,
            MessageTable.role == Role.ASSISTANT,
        )
        .order_by(MessageTable.position.desc())
        .limit(1)
    ).one()
    change_score(session, user_id, conversation_id, last.id, value, None, batch=batch)
    recount(session, [conversation_id], user_id=user_id)
    review = session.get(ReviewTable, (conversation_id, user_id))
    state = ReviewState.OPEN if review is None else review.state
    if state is not ReviewState.DONE:
        event = EventTable(
            user_id=user_id,
            conversation_id=conversation_id,
            old_state=state,
            new_state=ReviewState.DONE,
            batch=batch,
        )
        apply(session, event)
