"""Adding conversations, and merging the scores of those that are already there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.storing import Target, insert_conversations, store_scores
from db.engine import Database
from db.hashing import content_hash
from db.models import ConversationTable
from db.queries.loading import load_conversations
from db.records import Conversation, Score
from db.scoring import check_conversation
from db.text import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedConversations:
    """What adding conversations did.

    Attributes:
        ids: The new conversations.
        messages: How many messages they have.
        scores: Scores stored, outcomes included, those merged into duplicates too.
        duplicates: Conversations left out because the same words are already there.
        merged_scores: How many of `scores` went to conversations that were already there.
        kept_scores: Scores of duplicates that were not stored, because the rater has given that
            turn another score already; the one in the database stays.
    """

    ids: tuple[int, ...]
    messages: int
    scores: int
    duplicates: int
    merged_scores: int
    kept_scores: int


def add_conversation(db: Database, conversation: Conversation) -> int:
    """Store one conversation, even if the same words are already there; return its id.

    Raises:
        DataError: if it cannot be stored as it is.
    """
    hashed = check_and_hash([conversation])
    with db.session() as session:
        return insert_conversations(session, hashed)[0]


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
    hashed = check_and_hash(conversations)
    with db.session() as session:
        added = add_in(session, hashed)
    return list(added.ids), added.duplicates


def check_and_hash(conversations: Sequence[Conversation]) -> list[tuple[str, Conversation]]:
    """Return each conversation with its content hash; needs no transaction.

    Raises:
        DataError: if one of them cannot be stored as it is.
    """
    for conversation in conversations:
        check_conversation(conversation)
    return [(content_hash(conversation), conversation) for conversation in conversations]


def add_in(session: Session, hashed: Sequence[tuple[str, Conversation]]) -> AddedConversations:
    """Store what `check_and_hash` gave inside the caller's transaction (see `add_conversations`)."""
    present = _ids_by_hash(session, [digest for digest, _ in hashed])
    fresh: dict[str, Conversation] = {}
    repeated: list[tuple[str, Conversation]] = []
    for digest, conversation in hashed:
        if digest in present or digest in fresh:
            repeated.append((digest, conversation))
        else:
            fresh[digest] = conversation
    ids = insert_conversations(session, list(fresh.items()))
    present.update(zip(fresh, ids, strict=True))
    merged, kept = _merge_scores(session, [(present[digest], c) for digest, c in repeated])
    return AddedConversations(
        ids=tuple(ids),
        messages=sum(len(c.messages) for c in fresh.values()),
        scores=sum(_score_count(c) for c in fresh.values()) + merged,
        duplicates=len(repeated),
        merged_scores=merged,
        kept_scores=kept,
    )


def _score_count(conversation: Conversation) -> int:
    return len(conversation.outcomes) + sum(len(m.scores) for m in conversation.messages)


def _ids_by_hash(session: Session, hashes: Sequence[str]) -> dict[str, int]:
    """Return the oldest conversation with each of the hashes."""
    found: dict[str, int] = {}
    for start in range(0, len(hashes), 500):
        statement = (
            select(ConversationTable.content_hash, ConversationTable.id)
            .where(ConversationTable.content_hash.in_(hashes[start : start + 500]))
            .order_by(ConversationTable.id)
        )
        for digest, id in session.execute(statement):
            found.setdefault(digest, id)
    return found


def _merge_scores(
    session: Session, duplicates: Sequence[tuple[int, Conversation]]
) -> tuple[int, int]:
    """Add a duplicate's scores where its raters have none; return (added, left as they were)."""
    scored = [(id, c) for id, c in duplicates if _score_count(c)]
    present = load_conversations(session, sorted({id for id, _ in scored}))
    known: dict[tuple[int, int | None, str], float] = {}
    for id, conversation in present.items():
        for message_id, scores in _scored_parts(conversation, conversation):
            known.update({(id, message_id, s.rater): s.value for s in scores})
    targets: list[Target] = []
    kept = 0
    for id, conversation in scored:
        for message_id, scores in _scored_parts(present[id], conversation):
            for score in scores:
                key = (id, message_id, clean(score.rater))
                if key not in known:
                    known[key] = score.value
                    targets.append(
                        Target(conversation_id=id, message_id=message_id, scores=(score,))
                    )
                elif known[key] != score.value:
                    kept += 1
    store_scores(session, targets)
    return len(targets), kept


def _scored_parts(
    stored: Conversation, duplicate: Conversation
) -> Iterator[tuple[int | None, tuple[Score, ...]]]:
    """Pair the stored messages' ids, and None for the whole, with the duplicate's scores."""
    for message, twin in zip(stored.messages, duplicate.messages, strict=True):
        yield message.id, twin.scores
    yield None, duplicate.outcomes
