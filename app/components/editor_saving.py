"""Saving what the editor holds; people decide whether scores hold for a reply's new text."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import address, data, state
from app import draft as drafts
from app.components.errors import guarded
from app.components.format import counted, plain
from app.components.label_actions import own_score
from app.draft import Draft
from db import commands
from db.enums import Role
from db.errors import DataError
from db.records import Conversation, Message, User


def save(user: User, draft: Draft) -> None:
    """Store the draft; where it gives a scored reply another text, ask about its scores first.

    Raises:
        EveryTurnError: if it cannot be stored as it is.
    """
    drafts.conversation_from(draft)  # what cannot be stored is told before anything is asked
    _require_unchanged(draft)
    outdated = _outdated(draft)
    if outdated:
        _ask(user, draft, outdated)
    else:
        _store(user, draft, keep_scores=True)
        st.rerun()


def _require_unchanged(draft: Draft) -> None:
    """Refuse once to save over what somebody else has changed since the draft was begun.

    Raises:
        DataError: if the conversation has been changed; the next save is meant to replace that.
    """
    if draft.conversation_id is None or draft.stored is None:
        return
    now = data.conversation(draft.conversation_id)
    if now.updated_at == draft.stored.updated_at and now.tags == draft.stored.tags:
        return
    state.DRAFT.set(replace(draft, stored=now))
    raise DataError(
        "somebody changed this conversation after you had begun to edit it; nothing is saved yet",
        where=f"conversation {draft.conversation_id}",
        remedy="Look at it in another window. Save once more to put your version in its place, or "
        "discard yours and edit it anew.",
    )


def _outdated(draft: Draft) -> list[Message]:
    """Return the replies as they are stored whose scores were given for another text."""
    if draft.conversation_id is None:
        return []
    now = {message.id: message for message in data.conversation(draft.conversation_id).messages}
    found = []
    for message in draft.messages:
        stored = None if message.stored is None else now.get(message.stored.id)
        if stored is None or {message.role, stored.role} != {Role.ASSISTANT}:
            continue
        if message.content != stored.content and (stored.scores or stored.adjudicated):
            found.append(stored)
    return found


@st.dialog("Do the scores still hold?", icon=":material/grade:")
def _ask(user: User, draft: Draft, outdated: Sequence[Message]) -> None:
    scores = [score for message in outdated for score in message.scores]
    scores += [message.adjudicated for message in outdated if message.adjudicated]
    people = ", ".join(plain(name) for name in sorted({score.rater for score in scores}))
    st.markdown(
        f"You changed the text of **{counted(len(outdated), 'scored turn')}**. "
        f"Given for what was said before: **{counted(len(scores), 'score')}** by {people}."
    )
    st.caption("The former text stays in the turn's history either way.")
    with st.container(horizontal=True):
        answers = [
            st.button(
                "Keep the scores", type="primary", on_click=_answered, args=(user, draft, True)
            ),
            st.button("Take them away", on_click=_answered, args=(user, draft, False)),
            st.button("Go on editing"),
        ]
    if any(answers):
        st.rerun()


@guarded
def _answered(user: User, draft: Draft, keeps: bool) -> None:
    _store(user, draft, keep_scores=keeps)


def _store(user: User, draft: Draft, *, keep_scores: bool) -> None:
    conversation = drafts.conversation_from(draft)
    saved_id = draft.conversation_id
    if saved_id is None:
        saved_id = data.write(commands.add_conversation, conversation)
    else:
        data.write(
            commands.update_conversation,
            saved_id,
            conversation,
            changed_by=user.id,
            keep_scores=keep_scores,
        )
    _store_scores(user, draft, data.conversation(saved_id))
    state.DRAFT.clear()
    state.NOTICE.set("Saved.")
    address.open_conversation(saved_id)


def _store_scores(user: User, draft: Draft, saved: Conversation) -> None:
    """Store the scores that were typed; those that were left alone are the database's matter."""
    for wanted, message in zip(draft.messages, saved.messages, strict=True):
        before = None if wanted.stored is None else own_score(wanted.stored, user)[0]
        if message.role is Role.ASSISTANT and message.id is not None and wanted.value != before:
            data.write(
                commands.set_score, user_id=user.id, message_id=message.id, value=wanted.value
            )
