"""What labelling asks: where to go on, and what was changed."""

from sqlalchemy import and_, or_, select

from db.engine import Database
from db.enums import ReviewState, Role
from db.models import ConversationTable, EventTable, MessageTable, ReviewTable, ScoreTable
from db.records import ScoreEvent


def next_unscored(
    db: Database, *, user_id: int, after: tuple[int, int] | None = None
) -> tuple[int, int] | None:
    """Return the next turn that this user has not scored, oldest conversation first.

    Archived conversations and those that the user has marked done or skipped are left out.

    Args:
        db: The database.
        user_id: Whose scores count.
        after: (conversation id, message id) to start behind; the search wraps around.

    Returns:
        (conversation id, message id), or None if everything is scored.
    """
    mine = (
        select(ScoreTable.message_id)
        .where(ScoreTable.message_id == MessageTable.id, ScoreTable.user_id == user_id)
        .exists()
    )
    put_aside = (
        select(ReviewTable.conversation_id)
        .where(
            ReviewTable.conversation_id == ConversationTable.id,
            ReviewTable.user_id == user_id,
            ReviewTable.state.in_((ReviewState.DONE, ReviewState.SKIPPED)),
        )
        .exists()
    )
    unscored = (
        select(MessageTable.conversation_id, MessageTable.id)
        .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
        .where(
            ConversationTable.archived.is_(False),
            MessageTable.role == Role.ASSISTANT,
            ~mine,
            ~put_aside,
        )
        .order_by(MessageTable.conversation_id, MessageTable.position)
        .limit(1)
    )
    with db.read_session() as session:
        found = None
        if after is not None:
            conversation_id, message_id = after
            position = session.scalar(
                select(MessageTable.position).where(MessageTable.id == message_id)
            )
            later = or_(
                MessageTable.conversation_id > conversation_id,
                and_(
                    MessageTable.conversation_id == conversation_id,
                    MessageTable.position > (-1 if position is None else position),
                ),
            )
            found = session.execute(unscored.where(later)).one_or_none()
        if found is None:
            found = session.execute(unscored).one_or_none()
    return None if found is None else (found[0], found[1])


def review_state(db: Database, *, user_id: int, conversation_id: int) -> ReviewState:
    """Return where the conversation stands in this user's queue."""
    with db.read_session() as session:
        row = session.get(ReviewTable, (conversation_id, user_id))
        return ReviewState.OPEN if row is None else row.state


def score_events(
    db: Database,
    *,
    conversation_id: int | None = None,
    user_id: int | None = None,
    limit: int = 100,
) -> list[ScoreEvent]:
    """Return the latest score changes, newest first."""
    statement = select(EventTable).order_by(EventTable.id.desc()).limit(limit)
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
    )
