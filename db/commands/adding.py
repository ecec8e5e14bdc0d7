"""Adding conversations, and merging the scores of those that are already there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.merging import Merged, merge_scores
from db.commands.preparing import Prepared, prepare
from db.commands.storing import insert_conversations
from db.engine import Database
from db.models import ConversationTable
from db.queries.loading import in_chunks
from db.records import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedConversations:
    """What adding conversations did.

    Attributes:
        ids: The new conversations.
        messages: How many messages they have.
        scores: Scores stored with them, outcomes included.
        duplicates: Those left out because the same words are already there, with the id of the
            conversation that is.
        merged: What became of the duplicates' scores.
    """

    ids: tuple[int, ...]
    messages: int
    scores: int
    duplicates: tuple[tuple[int, Prepared], ...]
    merged: Merged


def add_conversation(db: Database, conversation: Conversation) -> int:
    """Store one conversation, even if the same words are already there; return its id.

    Raises:
        DataError: if it cannot be stored as it is.
    """
    prepared = prepare(conversation)
    with db.session() as session:
        return insert_conversations(session, [prepared])[0]


def add_conversations(
    db: Database, conversations: Sequence[Conversation], *, source: str | None = None
) -> tuple[list[int], int]:
    """Store conversations, all or none; those whose words are already there are left out.

    Scores of a duplicate are merged into the one that is there, rater by rater.

    Args:
        db: The database.
        conversations: Their ids are ignored.
        source: Replaces each conversation's own source if given.

    Returns:
        The new ids, and the number of duplicates.

    Raises:
        DataError: if one of them cannot be stored as it is; then none is.
    """
    if source is not None:
        conversations = [replace(conversation, source=source) for conversation in conversations]
    prepared = [prepare(conversation) for conversation in conversations]
    with db.session() as session:
        added = add_in(session, prepared)
    return list(added.ids), len(added.duplicates)


def add_in(
    session: Session, prepared: Sequence[Prepared], *, import_id: int | None = None
) -> AddedConversations:
    """Store conversations inside the caller's transaction (see `add_conversations`).

    Args:
        session: The transaction.
        prepared: The conversations; few enough to hold all their rows in memory.
        import_id: The import that brings them, if one does.
    """
    present = _ids_by_hash(session, [c.digest for c in prepared])
    fresh: dict[str, Prepared] = {}
    repeated: list[Prepared] = []
    for conversation in prepared:
        if conversation.digest in present or conversation.digest in fresh:
            repeated.append(conversation)
        else:
            fresh[conversation.digest] = conversation
    ids = insert_conversations(session, list(fresh.values()), import_id=import_id)
    present.update(zip(fresh, ids, strict=True))
    duplicates = tuple((present[c.digest], c) for c in repeated)
    return AddedConversations(
        ids=tuple(ids),
        messages=sum(len(c.messages) for c in fresh.values()),
        scores=sum(len(c.scores) for c in fresh.values()),
        duplicates=duplicates,
        merged=merge_scores(session, duplicates, import_id=import_id),
    )


def _ids_by_hash(session: Session, hashes: Sequence[str]) -> dict[str, int]:
    """Return the oldest conversation with each of the hashes."""
    found: dict[str, int] = {}
    for chunk in in_chunks(hashes):
        statement = (
            select(ConversationTable.content_hash, ConversationTable.id)
            .where(ConversationTable.content_hash.in_(chunk))
            .order_by(ConversationTable.id)
        )
        for digest, id in session.execute(statement):
            found.setdefault(digest, id)
    return found
