"""Label: score every assistant turn of a conversation, with the mouse or with the keyboard."""

import streamlit as st

from app import address, auth, data, routes
from app.components import label_actions as actions
from app.components.errors import show_failure, shown
from app.components.format import counted, plain, title_of
from app.components.label_bar import render_bar
from app.components.label_queue import QUEUES, Place, choose_queue, place_of
from app.components.label_turns import render_turns
from app.components.layout import reading_page
from app.components.notice import show_notice
from db.enums import ReviewState
from db.records import Conversation, User

STANCES = {
    ReviewState.OPEN: "",
    ReviewState.DONE: ":green-badge[:material/check: done]",
    ReviewState.SKIPPED: ":gray-badge[skipped]",
    ReviewState.FLAGGED: ":red-badge[:material/flag: flagged]",
}


def render() -> None:
    """Draw the page."""
    user = auth.current_user()
    if data.overview().turns == 0:
        st.title("Label")
        st.write(
            "Here you score every reply of a conversation. There is no conversation with a reply "
            "yet: load an example set, type one in, or import a file."
        )
        st.page_link(routes.HOME, label="Load an example set", icon=":material/download:")
        st.page_link(routes.CONVERSATIONS, label="Type in or import", icon=":material/add:")
        return
    _desk(user)


@st.fragment
def _desk(user: User) -> None:
    """Draw the queue and the conversation; a score redraws this part of the page alone."""
    with shown(), reading_page():
        left, middle, right = st.columns([3, 9, 4], vertical_alignment="bottom")
        with left:
            queue = choose_queue(user)
        conversation_id = address.conversation_id()
        if conversation_id is None:
            conversation_id = _first(user, queue)
            address.open_conversation(conversation_id)
        conversation = data.conversation(conversation_id)
        place = place_of(conversation_id, queue)
        stance = data.review_state(user_id=user.id, conversation_id=conversation_id)
        turns = conversation.assistant_messages
        focus = _focus(conversation, user)
        with middle:
            _facts(conversation, user, place, stance)
        with right:
            _neighbours(place)
        show_failure()
        show_notice()
        if not turns:
            st.info("This conversation has no assistant turn, so there is nothing to score here.")
        render_turns(conversation, user, focus)
        render_bar(conversation, user, place, stance, turns[focus].id if turns else None)


def _first(user: User, queue: list[int]) -> int:
    """Return the conversation to begin with: where a score is missing, else the oldest."""
    missing = data.next_unscored(user_id=user.id)
    if missing is not None and (not queue or missing[0] in queue):
        return missing[0]
    return (queue or data.conversation_ids(QUEUES["All"], user_id=user.id))[0]


def _focus(conversation: Conversation, user: User) -> int:
    """Return the turn that the address names, else the first without a score, else the first."""
    turns = conversation.assistant_messages
    asked = address.turn()
    if asked is not None and 0 <= asked < len(turns):
        return asked
    missing = (i for i, turn in enumerate(turns) if actions.own_score(turn, user)[0] is None)
    return next(missing, 0)


def _facts(conversation: Conversation, user: User, place: Place, stance: ReviewState) -> None:
    turns = conversation.assistant_messages
    scored = sum(actions.own_score(turn, user)[0] is not None for turn in turns)
    if place.position is not None:
        where = f"conversation {place.position} of {place.size}"
    else:
        where = f"not in this queue; {place.size or 'nothing'} left in it"
    st.markdown(f"#### {plain(title_of(conversation))} {STANCES[stance]}", anchors=False)
    st.progress(
        scored / len(turns) if turns else 0.0,
        text=f"{scored} of {counted(len(turns), 'turn')} scored · {where}",
    )


def _neighbours(place: Place) -> None:
    """Offer the conversations before and after this one."""
    ways = (("Previous", "Left", place.previous), ("Next", "Right", place.next))
    with st.container(horizontal=True, horizontal_alignment="right", gap="xsmall"):
        for name, key, neighbour in ways:
            st.button(
                name,
                key=f"go.{key}",
                help=f"{name} conversation of the queue",
                shortcut=key,
                disabled=neighbour is None,
                on_click=address.open_conversation,
                args=(neighbour,),
            )


if __name__ == "__main__":
    render()
