"""Changing conversations that are there."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from db.commands.storing import insert_conversations, message_row, store_scores, targets_of
from db.engine import Database
from db.enums import Role
from db.errors import DataError, NotFoundError
from db.hashing import content_hash
from db.models import (
    AdjudicationTable,
    ConversationTable,
    MessageTable,
    ScoreTable,
    TagTable,
    now,
)
from db.queries.loading import in_chunks, load_conversations
from db.records import Conversation, Message
from db.scoring import check_conversation
from db.text import clean


def update_conversation(db: Database, conversation_id: int, conversation: Conversation) -> None:
    """Replace title, system prompt, tags and messages of a conversation.

    Messages that carry an `id` keep their row and the scores it has in the database, also where
    their text changed (a message that is no longer the assistant's loses them); messages without one are new and bring their scores; those missing from
    `conversation` are deleted with their scores. A reply whose text changed loses what was
    sampled with the old one: model, run, token ids and logprobs. Outcomes stay as they are.

    Raises:
        NotFoundError: if the conversation does not exist (any more).
        DataError: if it cannot be stored as it is, or a message's id belongs elsewhere.
    """
    check_conversation(conversation)
    with db.session() as session:
        row = session.get(ConversationTable, conversation_id)
        if row is None:
            raise _not_found(conversation_id)
        row.title = conversation.title
        row.system = conversation.system
        row.content_hash = content_hash(conversation)
        row.updated_at = now()
        _replace_tags(session, [conversation_id], conversation.tags)
        _replace_messages(session, conversation_id, conversation.messages)


def duplicate_conversation(db: Database, conversation_id: int) -> int:
    """Store a copy without scores and outcomes; return its id.

    Raises:
        NotFoundError: if the conversation does not exist (any more).
    """
    with db.session() as session:
        found = load_conversations(session, [conversation_id])
        if conversation_id not in found:
            raise _not_found(conversation_id)
        original = found[conversation_id]
        copy = replace(
            original,
            title=f"{original.title} (copy)" if original.title else "",
            messages=tuple(
                replace(message, scores=(), adjudicated=None) for message in original.messages
            ),
            outcomes=(),
            archived=False,
            created_at=None,
            updated_at=None,
        )
        return insert_conversations(session, [(content_hash(copy), copy)])[0]


def set_tags(db: Database, ids: Sequence[int], tags: Sequence[str]) -> None:
    """Give conversations exactly these tags; blank ones are dropped."""
    with db.session() as session:
        _replace_tags(session, ids, tags)


def set_archived(db: Database, ids: Sequence[int], archived: bool) -> None:
    """Put conversations into the archive, or take them out."""
    with db.session() as session:
        for chunk in in_chunks(ids):
            session.execute(
                update(ConversationTable)
                .where(ConversationTable.id.in_(chunk))
                .values(archived=archived)
            )


def delete_conversations(db: Database, ids: Sequence[int]) -> int:
    """Delete conversations with everything that belongs to them; return how many there were."""
    with db.session() as session:
        statements = [
            delete(ConversationTable)
            .where(ConversationTable.id.in_(chunk))
            .returning(ConversationTable.id)
            for chunk in in_chunks(ids)
        ]
        return sum(len(session.scalars(statement).all()) for statement in statements)


def _replace_tags(session: Session, ids: Sequence[int], tags: Sequence[str]) -> None:
    names = sorted({clean(tag).strip() for tag in tags} - {""})
    for chunk in in_chunks(ids):
        session.execute(delete(TagTable).where(TagTable.conversation_id.in_(chunk)))
        there = session.scalars(
            select(ConversationTable.id).where(ConversationTable.id.in_(chunk))
        ).all()
        rows = [{"conversation_id": id, "tag": tag} for id in there for tag in names]
        if rows:
            session.execute(insert(TagTable), rows)


def _replace_messages(session: Session, conversation_id: int, messages: Sequence[Message]) -> None:
    statement = select(MessageTable).where(MessageTable.conversation_id == conversation_id)
    rows = {row.id: row for row in session.scalars(statement)}
    kept = [message.id for message in messages if message.id is not None]
    if len(set(kept)) < len(kept) or not set(kept) <= set(rows):
        raise DataError(
            "a message belongs to another conversation or was deleted meanwhile",
            where=f"conversation {conversation_id}",
            remedy="Load the conversation again and repeat the change.",
        )
    for id in set(rows) - set(kept):
        session.delete(rows[id])
    for row in rows.values():
        row.position = -1 - row.position  # makes room: positions are unique at every moment
    session.flush()
    for position, message in enumerate(messages):
        if message.id is None:
            row = MessageTable(
                **message_row(message, conversation_id=conversation_id, position=position)
            )
            session.add(row)
            session.flush()
            targets = targets_of(message, conversation_id=conversation_id, message_id=row.id)
            store_scores(session, targets)
        else:
            _change_message(rows[message.id], message, position)
            if message.role is not Role.ASSISTANT:
                for table in (ScoreTable, AdjudicationTable):
                    session.execute(delete(table).where(table.message_id == message.id))


def _change_message(row: MessageTable, message: Message, position: int) -> None:
    row.position = position
    row.role = message.role
    row.tool_calls = list(message.tool_calls) or None
    row.tool_call_id = message.tool_call_id
    if row.content != clean(message.content):
        row.content = message.content
        row.model = row.run_id = row.token_ids = row.logprobs = None


def _not_found(conversation_id: int) -> NotFoundError:
    return NotFoundError(
        f"there is no conversation {conversation_id}",
        where="conversations",
        remedy="It may have been deleted; go back to the list.",
    )
