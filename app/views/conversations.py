"""Conversations: find, open, write, import and export them."""

import streamlit as st

from app import address, auth, data, routes
from app.components.conversation_page import render_conversation
from app.components.conversation_table import render_table
from app.components.editor import render_editor
from app.components.errors import show_error, show_failure
from app.components.label_blind import hides_from, seen_by
from app.components.layout import reading_page
from app.components.notice import show_notice
from db.errors import NotFoundError
from db.records import Conversation, User


def render() -> None:
    """Draw what the address asks for: one conversation, the editor, the import, or the table."""
    user = auth.current_user()
    show_notice()
    conversation_id = address.conversation_id()
    mode = address.mode() if auth.is_admin() else ""  # only admins write and edit
    if conversation_id is not None:
        _one(conversation_id, user, mode)
    elif mode == "new":
        with reading_page():
            _back()
            st.title("New conversation", anchor=False)
            render_editor(user, None)
    else:
        _all(user)


def _one(conversation_id: int, user: User, mode: str) -> None:
    conversation = _found(conversation_id, user)
    if conversation is None:
        _back()
    elif mode == "edit":
        with reading_page():
            _back()
            st.title("Edit the conversation", anchor=False)
            render_editor(user, conversation)
    else:
        _back()
        show_failure()
        render_conversation(conversation)


def _found(conversation_id: int, user: User) -> Conversation | None:
    try:
        found = data.conversation(conversation_id)
    except NotFoundError as error:
        show_error(error)
        return None
    return seen_by(found, user.name) if hides_from(user, data.project_settings()) else found


def _back() -> None:
    st.button(
        "All conversations",
        icon=":material/arrow_back:",
        type="tertiary",
        on_click=address.open_conversation,
        args=(None,),
    )


def _all(user: User) -> None:
    is_empty = data.overview().conversations == 0
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Conversations", anchor=False)
        st.space("stretch")
        if auth.is_admin():
            st.button(
                "New",
                type="primary",
                icon=":material/add:",
                on_click=address.open_conversation,
                args=(None,),
                kwargs={"mode": "new"},
            )
        if auth.is_admin() and st.button("Import", icon=":material/download:"):
            st.switch_page(routes.IMPORTS)
    show_failure()
    if is_empty:
        st.write(
            "Conversations are what a model learns from here. Write one yourself, import a file, "
            "or begin with the example sets."
        )
        st.page_link(routes.HOME, label="Load the example sets", icon=":material/auto_stories:")
    else:
        render_table(user)


if __name__ == "__main__":
    render()
