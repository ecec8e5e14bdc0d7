"""The question before something is deleted for good."""

import streamlit as st

from app import address, data, state
from app.components.errors import guarded
from app.components.format import counted
from db import commands


def confirm_delete(ids: list[int]) -> None:
    """Ask once, with the count of what goes; afterwards the table is shown."""
    turns = [
        turn for chosen in data.conversations(tuple(ids)) for turn in chosen.assistant_messages
    ]
    scores = sum(len(turn.scores) for turn in turns)
    _ask(
        ids,
        f"{counted(len(ids), 'conversation')} with {counted(len(turns), 'turn')} and "
        f"{counted(scores, 'score')} will be gone. Finished runs keep their own frozen copy.",
    )


@st.dialog("Delete for good?", icon=":material/delete:")
def _ask(ids: list[int], question: str) -> None:
    st.write(question)
    with st.container(horizontal=True):
        name = f"Delete {counted(len(ids), 'conversation')}"
        deleted = st.button(name, type="primary", on_click=_delete, args=(ids,))
        kept = st.button("Keep")
    if deleted or kept:
        st.rerun()


@guarded
def _delete(ids: list[int]) -> None:
    deleted = data.write(commands.delete_conversations, ids)
    state.NOTICE.set(f"{counted(deleted, 'conversation')} deleted.")
    state.TABLE_VERSION.set(state.TABLE_VERSION.get() + 1)
    address.open_conversation(None)
