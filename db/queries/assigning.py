"""Who is asked to score what: for queues and for those who share the work out."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, func, select

from db.engine import Database
from db.enums import ReviewState
from db.models import AssignmentTable, ConversationTable, ReviewTable, UserTable
from db.queries.loading import in_chunks
from db.records.labels import Workload


def is_assigned_to(user_id: int) -> ColumnElement[bool]:
    """Return the condition that a person is asked to score a conversation (for `where`)."""
    return ConversationTable.id.in_(
        select(AssignmentTable.conversation_id).where(AssignmentTable.user_id == user_id)
    )


def assigned_names(db: Database, ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the names of those who are asked to score each of the conversations, sorted."""
    names: dict[int, list[str]] = defaultdict(list)
    with db.read_session() as session:
        for chunk in in_chunks(ids):
            statement = (
                select(AssignmentTable.conversation_id, UserTable.name)
                .join(UserTable, UserTable.id == AssignmentTable.user_id)
                .where(AssignmentTable.conversation_id.in_(chunk))
                .order_by(UserTable.name)
            )
            for id, name in session.execute(statement):
                names[id].append(name)
    return {id: tuple(names[id]) for id in ids}


def workloads(db: Database) -> list[Workload]:
    """Return how much each person was asked to score and has done, archived left out."""
    done = and_(
        ReviewTable.conversation_id == AssignmentTable.conversation_id,
        ReviewTable.user_id == AssignmentTable.user_id,
        ReviewTable.state != ReviewState.OPEN,
    )
    statement = (
        select(
            UserTable.name,
            func.count(AssignmentTable.conversation_id),
            func.count(ReviewTable.conversation_id),
        )
        .join(AssignmentTable, AssignmentTable.user_id == UserTable.id)
        .join(ConversationTable, ConversationTable.id == AssignmentTable.conversation_id)
        .outerjoin(ReviewTable, done)
        .where(ConversationTable.archived.is_(False))
        .group_by(UserTable.id, UserTable.name)
        .order_by(UserTable.name)
    )
    with db.read_session() as session:
        return [
            Workload(rater=name, assigned=assigned, handled=handled)
            for name, assigned, handled in session.execute(statement)
        ]
