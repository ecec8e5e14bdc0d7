"""Who is asked to score which conversations."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from db.commands.bulk import insert_many, stored_time
from db.engine import Database
from db.models import (
    AssignmentTable,
    ConversationTable,
    MessageTable,
    ScoreTable,
    UserTable,
    now,
)
from db.queries.loading import in_chunks


def assign(db: Database, ids: Sequence[int], user_ids: Sequence[int]) -> int:
    """Ask each of these people to score each of these conversations; return how many asks are new.

    Conversations and people that do not exist (any more) are passed over.
    """
    with db.session() as session:
        there = _existing_conversations(session, ids)
        people = _existing_people(session, user_ids)
        asked = _assigned(session, there)
        fresh = [(id, user) for id in there for user in people if user not in asked[id]]
        _store(session, fresh)
        return len(fresh)


def unassign(db: Database, ids: Sequence[int], user_ids: Sequence[int]) -> int:
    """Ask these people no longer; return how many asks went. Scores stay."""
    gone = 0
    with db.session() as session:
        for chunk in in_chunks(ids):
            statement = (
                delete(AssignmentTable)
                .where(
                    AssignmentTable.conversation_id.in_(chunk),
                    AssignmentTable.user_id.in_(user_ids),
                )
                .returning(AssignmentTable.conversation_id)
            )
            gone += len(session.scalars(statement).all())
    return gone


def distribute(db: Database, ids: Sequence[int], user_ids: Sequence[int], *, raters: int) -> int:
    """Share conversations out, so that each gets its raters and people get equally many.

    Those who were asked before, or have scored a turn without being asked, count. Each missing
    rater is the one among `user_ids` who has the fewest of these conversations so far.

    Args:
        db: The database.
        ids: The conversations, in the order in which they are shared out.
        user_ids: Who can be asked.
        raters: How many people should score each conversation.

    Returns:
        How many asks are new.
    """
    with db.session() as session:
        there = _existing_conversations(session, ids)
        people = _existing_people(session, user_ids)
        asked = _assigned(session, there)
        scorers = _scorers(session, there)
        load = Counter(dict.fromkeys(people, 0))
        for users in asked.values():
            load.update(user for user in users if user in load)
        fresh: list[tuple[int, int]] = []
        for id in there:
            taken = asked[id] | scorers[id]
            free = sorted((user for user in people if user not in taken), key=lambda u: load[u])
            for user in free[: max(0, raters - len(taken))]:
                fresh.append((id, user))
                load[user] += 1
        _store(session, fresh)
        return len(fresh)


def _store(session: Session, pairs: Sequence[tuple[int, int]]) -> None:
    at = stored_time(session, now())
    columns = ("conversation_id", "user_id", "assigned_at")
    insert_many(session, AssignmentTable, columns, [(id, user, at) for id, user in pairs])


def _existing_conversations(session: Session, ids: Sequence[int]) -> list[int]:
    found: set[int] = set()
    for chunk in in_chunks(ids):
        statement = select(ConversationTable.id).where(ConversationTable.id.in_(chunk))
        found.update(session.scalars(statement))
    return [id for id in dict.fromkeys(ids) if id in found]


def _existing_people(session: Session, user_ids: Sequence[int]) -> list[int]:
    statement = select(UserTable.id).where(UserTable.id.in_(user_ids)).order_by(UserTable.id)
    return list(session.scalars(statement))


def _assigned(session: Session, ids: Sequence[int]) -> dict[int, set[int]]:
    users: dict[int, set[int]] = {id: set() for id in ids}
    for chunk in in_chunks(ids):
        statement = select(AssignmentTable.conversation_id, AssignmentTable.user_id).where(
            AssignmentTable.conversation_id.in_(chunk)
        )
        for id, user in session.execute(statement):
            users[id].add(user)
    return users


def _scorers(session: Session, ids: Sequence[int]) -> dict[int, set[int]]:
    users: dict[int, set[int]] = {id: set() for id in ids}
    for chunk in in_chunks(ids):
        statement = (
            select(MessageTable.conversation_id, ScoreTable.user_id)
            .join(MessageTable, MessageTable.id == ScoreTable.message_id)
            .where(MessageTable.conversation_id.in_(chunk))
            .distinct()
        )
        for id, user in session.execute(statement):
            users[id].add(user)
    return users
