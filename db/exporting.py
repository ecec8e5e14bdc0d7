"""Conversations out of the database and into a file, one after another, at one moment."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from db import queries
from db.engine import Database
from db.formats import write_to
from db.queries.loading import in_chunks, load_conversations
from db.records import Conversation, ConversationFilter


def chosen_ids(
    db: Database, filter: ConversationFilter, *, user_id: int, archived: bool | None
) -> list[int]:
    """Return the ids of what a filter lets through, oldest first.

    Args:
        db: The database.
        filter: Which conversations; its order and whether archived ones count are passed over.
        user_id: Who asks: review states are theirs.
        archived: Whether to take the archived ones or the others; None takes both.
    """
    return sorted(
        id
        for wanted in ((False, True) if archived is None else (archived,))
        for id in queries.conversation_ids(db, replace(filter, archived=wanted), user_id=user_id)
    )


def export(db: Database, ids: Sequence[int], format: str, stream: BinaryIO) -> int:
    """Write conversations in the order of `ids`; those deleted meanwhile are left out.

    Returns:
        How many conversations were read; a format may make more or fewer rows of them.

    Raises:
        DataError: if there is no such format, or a number in a conversation is not finite.
        StorageError: if the database cannot be read.
        OSError: if the stream cannot be written.
    """
    read = 0

    def each() -> Iterator[Conversation]:
        nonlocal read
        with db.read_session() as session:
            for chunk in in_chunks(ids):
                found = load_conversations(session, chunk)
                for id in chunk:
                    if id in found:
                        read += 1
                        yield found[id]
                session.expunge_all()  # what was written need not be remembered

    write_to(each(), format, stream)
    return read
