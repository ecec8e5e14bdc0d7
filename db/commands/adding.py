"""Adding conversations, and merging the scores of those that are already there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.merging import MergePlan, merge_scores
from db.commands.preparing import Prepared, prepare
from db.commands.storing import insert_conversations
from db.engine import Database
from db.models import ConversationTable
from db.queries.loading import in_chunks
from db.records import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedConversations:
    """What adding conversations did, or would do.

    Attributes:
        fresh: The new ones.
        ids: Their ids, none where nothing was stored.
        there: Those left out because the database holds the same words.
        repeated: Those left out because the same words came before them.
        merged: What became of the scores of those left out.
    """

    fresh: tuple[Prepared, ...]
    ids: tuple[int, ...]
    there: tuple[Prepared, ...]
    repeated: tuple[Prepared, ...]
    merged: MergePlan


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
    return list(added.ids), len(added.there) + len(added.repeated)


def add_in(
    session: Session, prepared: Sequence[Prepared], *, import_id: int | None = None
) -> AddedConversations:
    """Store conversations inside the caller's transaction (see `add_conversations`).

    Args:
        session: The transaction.
        prepared: The conversations; few enough to hold all their rows in memory.
        import_id: The import that brings them, if one does.
    """
    present = find_present(session, [c.digest for c in prepared])
    ids = {digest: found.id for digest, found in present.items()}
    there: list[Prepared] = []
    repeated: list[Prepared] = []
    fresh: dict[str, Prepared] = {}
    for conversation in prepared:
        found = present.get(conversation.digest)
        if conversation.digest in fresh:
            repeated.append(conversation)
        elif found is None:
            fresh[conversation.digest] = conversation
        elif import_id is not None and found.import_id == import_id:
            repeated.append(conversation)
        else:
            there.append(conversation)
    new_ids = insert_conversations(session, list(fresh.values()), import_id=import_id)
    ids.update(zip(fresh, new_ids, strict=True))
    return AddedConversations(
        fresh=tuple(fresh.values()),
        ids=tuple(new_ids),
        there=tuple(there),
        repeated=tuple(repeated),
        merged=merge_scores(session, (*there, *repeated), ids, import_id=import_id),
    )


@dataclass(frozen=True, slots=True)
class Present:
    """A conversation that is there, and the import that brought it."""

    id: int
    import_id: int | None


def find_present(session: Session, digests: Sequence[str]) -> dict[str, Present]:
    """Return the oldest conversation with each of the content hashes."""
    found: dict[str, Present] = {}
    for chunk in in_chunks(digests):
        statement = (
            select(
                ConversationTable.content_hash, ConversationTable.id, ConversationTable.import_id
            )
            .where(ConversationTable.content_hash.in_(chunk))
            .order_by(ConversationTable.id)
        )
        for digest, id, import_id in session.execute(statement):
            found.setdefault(digest, Present(id, import_id))
    return found
