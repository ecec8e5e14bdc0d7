"""Finding the stored conversations that say the same as given ones."""

from collections.abc import Sequence

from sqlalchemy import select

from db.engine import Database
from db.hashing import content_hash
from db.models import ConversationTable
from db.records import Conversation

MANY = 500
"""How many hashes one statement asks for; databases limit the number of parameters."""


def ids_of_same(db: Database, conversations: Sequence[Conversation]) -> tuple[int, ...]:
    """Return the ids of the stored conversations with the same messages, in the given order.

    What is no longer there is left out; of several alike the oldest counts.
    """
    hashes = [content_hash(conversation) for conversation in conversations]
    found: dict[str, int] = {}
    with db.read_session() as session:
        for start in range(0, len(hashes), MANY):
            statement = (
                select(ConversationTable.content_hash, ConversationTable.id)
                .where(ConversationTable.content_hash.in_(hashes[start : start + MANY]))
                .order_by(ConversationTable.id)
            )
            for digest, conversation_id in session.execute(statement):
                found.setdefault(digest, conversation_id)
    return tuple(dict.fromkeys(found[digest] for digest in hashes if digest in found))
