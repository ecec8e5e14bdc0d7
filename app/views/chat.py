"""Chat: the base model and adapters side by side on the same question."""

import streamlit as st

from app import address, auth, chat_store
from app.chat_jobs import job_of
from app.chat_models import base_models, run_on
from app.chat_tree import Chat
from app.components import chat_actions as actions
from app.components.chat_live import render_waiting_notice
from app.components.chat_setup import render_setup
from app.components.chat_turns import render_sent, render_turns
from app.components.errors import show_error, show_failure
from app.components.format import ago, plain, shortened
from app.components.layout import reading_page
from app.components.notice import show_notice
from db.errors import EveryTurnError
from trainer.serving.worker import chat_device

PAGE_WIDTH = 1280
EARLIER = 12
"""So many earlier chats are offered."""


def render() -> None:
    """Draw the page."""
    show_notice()
    try:
        chat = actions.opened()
    except EveryTurnError as error:
        st.title("Chat", anchor=False)
        show_error(error)
        st.button("New chat", icon=":material/add:", on_click=address.open_chat, args=(None,))
        return
    can_act = actions.is_own(chat)
    with reading_page(PAGE_WIDTH):
        _head(chat)
        show_failure()
        if not base_models():
            _no_model(chat)
        if can_act:
            render_setup(chat)
        else:
            st.info("Somebody else's chat: you can read it.", icon=":material/visibility:")
        run = run_on(chat_device())
        if run is not None and (not chat.id or job_of(chat.id) is None):
            render_waiting_notice(run)
        if not chat.turns and not chat.opening:
            st.markdown(
                "Ask something below. Every model that you chose answers it, side by side; what "
                "you like, or do not, goes on to labelling with its tokens and log-probabilities."
            )
        render_turns(chat, can_act=can_act)
        if can_act:
            _foot(chat)
    if can_act:
        _input(chat)


def _head(chat: Chat) -> None:
    user = auth.current_user()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Chat", anchor=False, width="content")
        st.space("stretch")
        with st.popover("Earlier chats", icon=":material/history:"):
            _earlier(user.id, chat.id)
        st.button(
            "New chat",
            icon=":material/add:",
            key="chat.new",
            disabled=not chat.id,
            on_click=address.open_chat,
            args=(None,),
        )


def _earlier(user_id: int, shown: str) -> None:
    kept = chat_store.recent(user_id, limit=EARLIER)
    if not kept:
        st.caption("Chats that you begin are listed here.")
    for each in kept:
        with st.container(horizontal=True, vertical_alignment="center", gap="xxsmall"):
            st.button(
                f"{plain(shortened(each.title, 40))} :gray[{ago(each.changed_at)}]",
                type="tertiary",
                key=f"chat.open.{each.id}",
                disabled=each.id == shown,
                on_click=address.open_chat,
                args=(each.id,),
            )
            st.space("stretch")
            if st.button(
                "Delete", icon=":material/delete:", type="tertiary", key=f"chat.delete.{each.id}"
            ):
                _ask_deletion(each)


@st.dialog("Delete this chat?", icon=":material/delete:")
def _ask_deletion(kept: chat_store.Kept) -> None:
    st.markdown(
        f"**{plain(shortened(kept.title))}** goes for good, with all its branches. What was sent "
        "to labelling stays."
    )
    with st.container(horizontal=True):
        deleted = st.button(
            "Delete the chat",
            type="primary",
            key="chat.delete_it",
            on_click=actions.delete,
            args=(kept.id,),
        )
        stays = st.button("Keep it", key="chat.keep_it")
    if deleted or stays:
        st.rerun()


def _foot(chat: Chat) -> None:
    """Offer to send what was said to be labelled."""
    answered = any(reply.text for turn in chat.path for reply in turn.replies)
    if answered and job_of(chat.id) is None:
        st.button(
            "Send to labelling",
            icon=":material/grade:",
            key="chat.send",
            on_click=actions.send,
            help="Stores what is shown as conversations, one for each model, with token ids, "
            "log-probabilities, model and settings. A run that trains on them starts from ratios "
            "that are exactly 1 where the same model is trained.",
        )
    render_sent(chat)


def _input(chat: Chat) -> None:
    last = chat.last
    if chat.id and job_of(chat.id) is not None:
        told, closed = "Wait for the reply, or stop it", True
    elif last is not None and last.awaits_vote:
        told, closed = "Say first which reply is better", True
    elif not chat.lanes:
        told, closed = "Choose first who answers", True
    else:
        told, closed = "Ask something", False
    with st.bottom, reading_page(PAGE_WIDTH):
        key = "chat.input"  # the same for all chats: what is being typed outlives the first change
        st.chat_input(
            told,
            key=key,
            disabled=closed,
            max_chars=100_000,
            on_submit=actions.say,
            args=(key, chat.leaf),
        )


def _no_model(chat: Chat) -> None:
    st.info("No model is on this machine yet. Fetch one first:", icon=":material/download:")
    st.code(f"python -m trainer pull {chat.base_model}", language="bash")


if __name__ == "__main__":
    render()
