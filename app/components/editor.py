"""The editor: a conversation written the way it will be read, message under message."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from app import address, data, state
from app import draft as drafts
from app.components.editor_saving import save
from app.components.errors import show_failure, shown
from app.components.layout import reading_page
from app.components.transcript import AVATARS, page_of_messages
from app.draft import Draft, DraftMessage
from db.enums import Role
from db.records import Conversation, User

PAGE_MESSAGES = 20
"""More messages than this are edited page by page: each is half a dozen fields and buttons."""

ROLES = [Role.USER, Role.ASSISTANT, Role.TOOL, Role.SYSTEM]


def render_editor(user: User, conversation: Conversation | None) -> None:
    """Edit a stored conversation, or write a new one; nothing is stored before "Save"."""
    draft = _with_typed(_current(user, conversation))
    top = st.container()
    with top:
        show_failure()
    draft = _head(draft)
    messages = list(draft.messages)
    count = len(messages)
    key = f"draft.{draft.conversation_id}"
    first = page_of_messages(count, key=key, shown=draft.at, size=PAGE_MESSAGES)
    for index in range(first, min(first + PAGE_MESSAGES, count)):
        messages[index] = _message(messages[index], index, count)
    draft = replace(draft, messages=tuple(messages))
    state.DRAFT.set(draft)
    if not draft.messages:
        st.button("Add a message", icon=":material/add:", on_click=_add, args=(-1,))
    with st.bottom, reading_page(), st.container(horizontal=True, vertical_alignment="center"):
        # Not a callback: a callback would run before the text typed last is in the draft.
        is_saving = st.button("Save", type="primary", icon=":material/save:")
        st.button("Discard", on_click=_discard, args=(draft.conversation_id,))
        st.caption("Kept while you look at other pages; stored when you save.")
    if is_saving:
        with top, shown():
            save(user, draft)


def _current(user: User, conversation: Conversation | None) -> Draft:
    """Return the draft in work, or a fresh one where that belongs to another conversation."""
    draft = state.DRAFT.get()
    wanted = None if conversation is None else conversation.id
    if draft is not None and draft.conversation_id == wanted:
        return draft
    if conversation is None:
        return drafts.new_draft()
    return drafts.draft_of(conversation, user.name)


def _with_typed(draft: Draft) -> Draft:
    """Return the draft with what was typed last.

    A text and the click that turns the page can arrive together; then the text's field is not
    drawn any more, and only the session still holds what was typed.
    """
    return replace(draft, messages=tuple(_typed(message) for message in draft.messages))


def _typed(message: DraftMessage) -> DraftMessage:
    key = f"draft.{message.uid}"
    content = state.typed(f"{key}.content", message.content) or ""
    role = state.typed(f"{key}.role", message.role)
    value = state.typed(f"{key}.score", message.value)
    if (role, content, value) == (message.role, message.content, message.value):
        return message
    return replace(message, role=role, content=content, value=value)


def _head(draft: Draft) -> Draft:
    key = f"draft.{draft.conversation_id}"
    left, right = st.columns([2, 1])
    title = left.text_input(
        "Title", value=draft.title, key=f"{key}.title", placeholder="What it is about"
    )
    tags = right.multiselect(
        "Tags",
        sorted({*data.all_tags(), *draft.tags}),
        default=draft.tags,
        key=f"{key}.tags",
        accept_new_options=True,
        placeholder="Choose or type",
        help="For finding the conversation again, and for choosing what to train on.",
    )
    system = st.text_area(
        "System prompt",
        value=draft.system,
        key=f"{key}.system",
        placeholder="What the assistant is told before the conversation begins (optional)",
        height="content",
    )
    return replace(draft, title=title or "", tags=tuple(tags), system=system or "")


def _message(message: DraftMessage, index: int, count: int) -> DraftMessage:
    key = f"draft.{message.uid}"
    with st.chat_message(message.role, avatar=AVATARS[message.role]):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if count > PAGE_MESSAGES:
                st.text(f"{index + 1:,}", width="content")
            role = st.selectbox(
                f"Role of message {index + 1}",
                ROLES,
                index=ROLES.index(message.role),
                key=f"{key}.role",
                label_visibility="collapsed",
                width=150,
            )
            value = message.value
            if role is Role.ASSISTANT:
                value = _score(message, key=key)
            st.space("stretch")
            _order(index, count, key=key)
        content = st.text_area(
            f"Text of message {index + 1}",
            value=message.content,
            key=f"{key}.content",
            label_visibility="collapsed",
            placeholder="What the assistant says" if role is Role.ASSISTANT else "Text",
            height="content",
        )
    return replace(message, role=role, content=content or "", value=value)


def _score(message: DraftMessage, *, key: str) -> float | None:
    # No limits here: the browser would keep a number beyond them to itself, and the turn would be
    # saved without a score. The save refuses it in words.
    return st.number_input(
        "Score",
        value=message.value,
        step=0.05,
        format="%.2f",
        placeholder="not scored",
        key=f"{key}.score",
        label_visibility="collapsed",
        width=170,
        help="Score of this reply: 0 is the worst, 1 the best. Empty means not scored.",
    )


def _order(index: int, count: int, *, key: str) -> None:
    steps: tuple[tuple[str, str, bool, Callable[..., None], tuple[int, ...]], ...] = (
        ("Up", "arrow_upward", index == 0, _move, (index, -1)),
        ("Down", "arrow_downward", index == count - 1, _move, (index, 1)),
        ("Add below", "add", False, _add, (index,)),
        ("Remove", "delete", False, _remove, (index,)),
    )
    for name, icon, disabled, action, args in steps:
        st.button(
            name,
            icon=f":material/{icon}:",
            key=f"{key}.{icon}",
            type="tertiary",
            disabled=disabled,
            on_click=action,
            args=args,
        )


def _drafted() -> Draft:
    draft = state.DRAFT.get()
    assert draft is not None  # the editor that was clicked in has put it there
    return draft


def _add(index: int) -> None:
    state.DRAFT.set(drafts.with_message_below(_drafted(), index))


def _move(index: int, by: int) -> None:
    state.DRAFT.set(drafts.with_move(_drafted(), index, by))


def _remove(index: int) -> None:
    state.DRAFT.set(drafts.without_message(_drafted(), index))


def _discard(conversation_id: int | None) -> None:
    state.DRAFT.clear()
    address.open_conversation(conversation_id)
