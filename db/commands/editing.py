"""Replacing the messages of a conversation, without forgetting what was scored."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.commands.changing import take_away
from db.commands.storing import message_row, store_scores, targets_of
from db.enums import Role
from db.errors import DataError
from db.models import (
    AdjudicationTable,
    MessageTable,
    MessageVersionTable,
    PendingNoteTable,
    ScoreTable,
)
from db.records import Message
from db.text import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Who edits, and whether scores of replies whose text changes hold for the new text."""

    changed_by: int | None
    keep_scores: bool


def replace_messages(
    session: Session, conversation_id: int, messages: Sequence[Message], edit: Edit
) -> None:
    """Bring a conversation to these messages (see `db.commands.update_conversation`).

    Raises:
        DataError: if a message's id belongs elsewhere.
    """
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
            _change_message(session, rows[message.id], message, position, edit)


def _change_message(
    session: Session, row: MessageTable, message: Message, position: int, edit: Edit
) -> None:
    content, calls = clean(message.content), list(message.tool_calls) or None
    changes_text = (row.content, row.tool_calls) != (content, calls)
    if changes_text or row.role is not message.role:
        keeps = edit.keep_scores and message.role is Role.ASSISTANT
        if _is_scored(session, row.id):
            _keep_version(session, row, edit, scores_kept=keeps)
        if not keeps:
            _take_scores(session, row, edit.changed_by)
    if row.content != content:
        row.model = row.run_id = row.token_ids = row.logprobs = row.sampling = None
    row.position, row.role, row.content = position, message.role, content
    row.tool_calls, row.tool_call_id = calls, message.tool_call_id


def _is_scored(session: Session, message_id: int) -> bool:
    return any(
        session.scalar(select(table.user_id).where(table.message_id == message_id).limit(1))
        for table in (ScoreTable, AdjudicationTable)
    )


def _keep_version(session: Session, row: MessageTable, edit: Edit, *, scores_kept: bool) -> None:
    session.add(
        MessageVersionTable(
            message_id=row.id,
            role=row.role,
            content=row.content,
            tool_calls=row.tool_calls,
            model=row.model,
            scores_kept=scores_kept,
            replaced_by=edit.changed_by,
        )
    )


def _take_scores(session: Session, row: MessageTable, changed_by: int | None) -> None:
    """Take every score, decision and waiting note of a message away; the log says who did it."""
    for table in (ScoreTable, AdjudicationTable, PendingNoteTable):
        for said in session.scalars(select(table).where(table.message_id == row.id)).all():
            take_away(session, said, row.conversation_id, changed_by=changed_by)
