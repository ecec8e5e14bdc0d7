"""Conversations: which there are, what is said in them, and how they leave as a file."""

import io
from datetime import datetime

from app.connection import database
from app.data.reading import read
from db import queries
from db.exporting import export as export_to
from db.records import Conversation, ConversationFilter, ConversationRow, FilterOptions


def count_conversations(filter: ConversationFilter, *, user_id: int) -> int:
    """Return how many conversations the filter lets through."""
    return read(queries.count_conversations, filter, user_id=user_id)


def conversation_rows(
    filter: ConversationFilter, *, user_id: int, limit: int = 50, offset: int = 0
) -> list[ConversationRow]:
    """Return one page of the conversations table."""
    return read(queries.conversation_rows, filter, user_id=user_id, limit=limit, offset=offset)


def conversation_ids(filter: ConversationFilter, *, user_id: int) -> list[int]:
    """Return the ids of all conversations the filter lets through, in its order."""
    return read(queries.conversation_ids, filter, user_id=user_id)


def matching_ids(filter: ConversationFilter, ids: tuple[int, ...], *, user_id: int) -> set[int]:
    """Return which of these conversations the filter lets through."""
    return read(queries.matching_ids, filter, ids, user_id=user_id)


def edited_at(conversation_id: int) -> datetime | None:
    """Return when a conversation's text was last changed, None if it is gone."""
    return read(queries.edited_at, conversation_id)


def filter_options() -> FilterOptions:
    """Return what there is to filter conversations by."""
    return read(queries.filter_options)


def all_tags() -> list[str]:
    """Return every tag in use."""
    return read(queries.all_tags)


def all_sources() -> list[str]:
    """Return every source conversations came from."""
    return read(queries.all_sources)


def conversation(conversation_id: int) -> Conversation:
    """Return one conversation.

    Raises:
        NotFoundError: if there is none with this id.
    """
    return read(queries.conversation, conversation_id)


def conversations(ids: tuple[int, ...]) -> list[Conversation]:
    """Return several conversations in the order of their ids."""
    return read(queries.conversations, ids)


def ids_of_same(conversations: tuple[Conversation, ...]) -> tuple[int, ...]:
    """Return the ids of the stored conversations with the same messages, in the given order."""
    return queries.ids_of_same(database(), conversations)


def export(filter: ConversationFilter, *, user_id: int, format: str) -> bytes:
    """Return a file with all conversations that the filter lets through, in its order."""
    stream = io.BytesIO()
    export_to(database(), conversation_ids(filter, user_id=user_id), format, stream)
    return stream.getvalue()
