"""One conversation, read-only: the chat on the left, facts and actions on the right."""

import streamlit as st

from app import address, auth, data, routes, state
from app.components.confirm import confirm_delete
from app.components.conversation_table import archive
from app.components.errors import guarded
from app.components.format import ago, counted, exact_time, plain, score_text, title_of
from app.components.transcript import render_transcript
from db import commands
from db.records import Conversation


def render_conversation(conversation: Conversation) -> None:
    """Show the conversation and what can be done with it."""
    assert conversation.id is not None  # it comes from the database
    chat, side = st.columns([5, 2], gap="large")
    with chat:
        st.markdown(f"## {plain(title_of(conversation))}", anchors=False)
        render_transcript(conversation, key=f"read.{conversation.id}")
    with side:
        _actions(conversation, conversation.id)
        _facts(conversation)
        _tags(conversation, conversation.id)


def _actions(conversation: Conversation, conversation_id: int) -> None:
    if st.button(
        "Score its turns",
        type="primary",
        icon=":material/grade:",
        width="stretch",
        disabled=not conversation.assistant_messages,
    ):
        st.switch_page(routes.LABEL, query_params={routes.CONVERSATION_PARAM: str(conversation_id)})
    if st.button(
        "Chat from here",
        icon=":material/forum:",
        width="stretch",
        help="Go on with the base model or an adapter; this conversation stays as it is.",
    ):
        st.switch_page(routes.CHAT, query_params={routes.CONVERSATION_PARAM: str(conversation_id)})
    if not auth.is_admin():
        return
    with st.container(horizontal=True, gap="xsmall"):
        st.button(
            "Edit",
            icon=":material/edit:",
            on_click=address.open_conversation,
            args=(conversation_id,),
            kwargs={"mode": "edit"},
        )
        st.button(
            "Duplicate",
            icon=":material/content_copy:",
            help="A copy without the scores",
            on_click=_duplicate,
            args=(conversation_id,),
        )
        st.button(
            "Bring back" if conversation.archived else "Archive",
            icon=":material/archive:",
            help="Archived conversations stay out of the table and of new runs",
            on_click=archive,
            args=([conversation_id], not conversation.archived),
        )
        if st.button("Delete", icon=":material/delete:"):
            confirm_delete([conversation_id])


def _facts(conversation: Conversation) -> None:
    turns = conversation.assistant_messages
    scored = sum(bool(turn.scores) for turn in turns)
    with st.container(border=True, gap="xxsmall"):
        st.markdown(f"**{scored} of {counted(len(turns), 'turn')} scored**")
        for outcome in conversation.outcomes:
            st.text(f"Whole conversation: {score_text(outcome.value)} ({outcome.rater})")
            if outcome.note:
                st.text(outcome.note)
        st.text(f"{counted(len(conversation.messages), 'message')}")
        if conversation.source:
            st.text(f"Source: {conversation.source}")
        for name, at in (
            ("Created", conversation.created_at),
            ("Changed", conversation.updated_at),
        ):
            if at is not None:
                st.text(f"{name} {ago(at)}", help=exact_time(at))
        if conversation.archived:
            st.badge("archived", color="gray")


def _tags(conversation: Conversation, conversation_id: int) -> None:
    if not auth.is_admin():
        if conversation.tags:
            st.text(f"Tags: {', '.join(conversation.tags)}")
        return
    key = f"tags.{conversation_id}.{hash(conversation.tags)}"
    st.multiselect(
        "Tags",
        sorted({*data.all_tags(), *conversation.tags}),
        default=conversation.tags,
        accept_new_options=True,
        placeholder="Choose or type",
        key=key,
        on_change=_set_tags,
        args=(conversation_id, key),
    )


@guarded
def _set_tags(conversation_id: int, key: str) -> None:
    data.write(commands.set_tags, [conversation_id], state.widget_texts(key))


@guarded
def _duplicate(conversation_id: int) -> None:
    copy_id = data.write(commands.duplicate_conversation, conversation_id)
    address.open_conversation(copy_id)
    state.NOTICE.set("This is the copy; it has no scores yet.")
