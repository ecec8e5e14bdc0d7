"""The question before something is deleted for good."""

import streamlit as st

from app import address, data, state
from app.components.errors import shown
from app.components.format import counted
from db import commands


@st.dialog("Delete for good?", icon=":material/delete:")
def confirm_delete(ids: list[int]) -> None:
    """Ask once, with the count of what goes; afterwards the table is shown."""
    chosen = data.conversations(tuple(ids))
    turns = [turn for conversation in chosen for turn in conversation.assistant_messages]
    scores = sum(len(turn.scores) for turn in turns)
    st.write(
        f"{counted(len(ids), 'conversation')} with {counted(len(turns), 'turn')} and "
        f"{counted(scores, 'score')} will be gone. Finished runs keep their own frozen copy."
    )
    with st.container(horizontal=True):
        if st.button(f"Delete {counted(len(ids), 'conversation')}", type="primary"):
            with shown():
                deleted = data.write(commands.delete_conversations, ids)
                state.NOTICE.set(f"{counted(deleted, 'conversation')} deleted.")
                state.TABLE_VERSION.set(state.TABLE_VERSION.get() + 1)
                address.open_conversation(None)
                st.rerun()
        if st.button("Keep"):
            st.rerun()
