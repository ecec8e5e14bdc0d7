"""What a rater sees above the chat: which conversation it is, and how the work goes."""

import streamlit as st

from app import routes
from app.components.format import counted, plain, title_of
from app.components.label_actions import own_score
from app.components.label_filter import told_counts
from app.components.label_queue import Queue
from db.enums import ReviewState
from db.records import Conversation, ConversationFilter, User

_STANCES = {
    ReviewState.OPEN: "",
    ReviewState.DONE: ":green-badge[:material/check: done]",
    ReviewState.SKIPPED: ":gray-badge[skipped]",
    ReviewState.FLAGGED: ":red-badge[:material/flag: flagged]",
}


def render_facts(conversation: Conversation, user: User, queue: Queue, stance: ReviewState) -> None:
    """Show title, progress and pace."""
    turns = conversation.assistant_messages
    scored = sum(own_score(turn, user)[0] is not None for turn in turns)
    place = queue.places.get(conversation.id or 0)
    where = "not in this queue" if place is None else f"{place + 1:,} of {len(queue.ids):,}"
    st.markdown(f"#### {plain(title_of(conversation))} {_STANCES[stance]}", anchors=False)
    st.progress(
        scored / len(turns) if turns else 0.0,
        text=f"{scored} of {counted(len(turns), 'turn')} scored · conversation {where}",
    )
    st.caption(told_counts(queue.filter, user))


def render_nothing_waits(filter: ConversationFilter, user: User) -> None:
    """Say that the queue is empty, and where to go on."""
    st.subheader("Nothing waits for you here", anchor=False)
    st.write(
        "Every conversation that this queue and its filters let through is done, or is scored by "
        "enough people. Look at another queue, or loosen the filter."
    )
    st.caption(told_counts(filter, user))
    st.page_link(routes.CONVERSATIONS, label="All conversations", icon=":material/chat:")
