"""Changing conversations that are there."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from db.commands.counting import recount, remeasure
from db.commands.editing import Edit, replace_messages
from db.commands.preparing import prepare
from db.commands.storing import insert_conversations
from db.engine import Database
from db.errors import NotFoundError
from db.hashing import content_hash
from db.models import ConversationTable, TagTable, now
from db.queries.loading import in_chunks, load_conversations
from db.records import Conversation
from db.scoring import check_conversation
from db.text import clean


def update_conversation(
    db: Database,
    conversation_id: int,
    conversation: Conversation,
    *,
    changed_by: int | None = None,
    keep_scores: bool = True,
) -> None:
    """Replace title, system prompt, tools, tags and messages of a conversation.

    Messages that carry an `id` keep their row; messages without one are new and bring their
    scores; those missing from `conversation` are deleted with their scores. A reply whose text
    changed loses what was sampled with the old one: model, run, token ids and logprobs. If it was
    scored, its former text is kept, and `keep_scores` decides whether its scores still hold (a
    message that is no longer the assistant's always loses them). Outcomes stay as they are.

    Args:
        db: The database.
        conversation_id: Which one.
        conversation: What it says now.
        changed_by: Who changes it.
        keep_scores: Whether the scores of replies whose text changed hold for the new text.

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
        row.tools = list(conversation.tools) or None
        row.content_hash = content_hash(conversation)
        row.updated_at = now()
        _replace_tags(session, [conversation_id], conversation.tags)
        edit = Edit(changed_by=changed_by, keep_scores=keep_scores)
        replace_messages(session, conversation_id, conversation.messages, edit)
        session.flush()
        recount(session, [conversation_id])
        remeasure(session, conversation_id)


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
        return insert_conversations(session, [prepare(copy)])[0]


def set_tags(db: Database, ids: Sequence[int], tags: Sequence[str]) -> None:
    """Give conversations exactly these tags; blank ones are dropped."""
    with db.session() as session:
        _replace_tags(session, ids, tags)


def add_tags(db: Database, ids: Sequence[int], tags: Sequence[str]) -> None:
    """Give conversations these tags beside those they have; blank ones are dropped."""
    names = sorted({clean(tag).strip() for tag in tags} - {""})
    with db.session() as session:
        for chunk in in_chunks(ids):
            there = session.scalars(
                select(ConversationTable.id).where(ConversationTable.id.in_(chunk))
            ).all()
            carried = {
                (row.conversation_id, row.tag)
                for row in session.scalars(
                    select(TagTable).where(TagTable.conversation_id.in_(chunk))
                )
            }
            rows = [
                {"conversation_id": id, "tag": tag}
                for id in there
                for tag in names
                if (id, tag) not in carried
            ]
            if rows:
                session.execute(insert(TagTable), rows)


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


def _not_found(conversation_id: int) -> NotFoundError:
    return NotFoundError(
        f"there is no conversation {conversation_id}",
        where="conversations",
        remedy="It may have been deleted; go back to the list.",
    )
