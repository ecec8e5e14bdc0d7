"""The chat that is being scored: every assistant turn carries its control and its state."""

from functools import partial

import streamlit as st

from app.components import label_actions as actions
from app.components.focus import keep_in_view
from app.components.format import plain, score_text
from app.components.score_input import exact_score, note_input, score_keys, score_picker
from app.components.transcript import (
    AVATARS,
    PAGE_MESSAGES,
    heading,
    page_of_messages,
    render_content,
    render_system,
    turn_numbers,
)
from db.records import Conversation, Message, User


def render_turns(conversation: Conversation, user: User, focus: int) -> None:
    """Show the chat; turn `focus` (from 0) listens to the keys."""
    messages, turns = conversation.messages, turn_numbers(conversation.messages)
    key = f"label.{conversation.id}"
    render_system(conversation.system, key=key)
    focused = turns.index(focus) if focus in turns else 0
    first = page_of_messages(len(messages), key=key, shown=focused)
    last_turn = len(conversation.assistant_messages) - 1
    for message, turn in list(zip(messages, turns, strict=True))[first : first + PAGE_MESSAGES]:
        if turn is None:
            with st.chat_message(message.role, avatar=AVATARS[message.role]):
                st.markdown(heading(message, None))
                render_content(message, key=f"message.{message.id}")
        else:
            _render_turn(message, turn, user, focus=focus, last_turn=last_turn)


def _render_turn(message: Message, turn: int, user: User, *, focus: int, last_turn: int) -> None:
    assert message.id is not None  # it comes from the database
    value, note = actions.own_score(message, user)
    is_focused = turn == focus
    key = f"turn.{message.id}"
    with (
        st.container(border=is_focused, key=f"{key}.{'focused' if is_focused else 'plain'}"),
        st.chat_message(message.role, avatar=AVATARS[message.role]),
    ):
        st.markdown(f"{heading(message, turn)}  {_state_badge(value)}{_others(message, user)}")
        render_content(message, key=f"message.{message.id}")
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            score = partial(actions.score_turn, user, message.id)
            if is_focused:
                step_on = partial(score, min(turn + 1, last_turn))
                score_keys(value, key=f"{key}.keys", on_score=step_on)
                keep_in_view(str(message.id))
            else:
                name = f"Score of turn {turn + 1}"
                score_picker(name, value, key=f"{key}.pick", on_score=partial(score, turn))
            _more(message.id, turn, user, value, note)
        if note:
            st.text(f"Note: {note}")


def _more(message_id: int, turn: int, user: User, value: float | None, note: str) -> None:
    """Offer the exact value, the note and the way back to "not scored"."""
    key = f"turn.{message_id}"
    score = partial(actions.score_turn, user, message_id, turn)
    with st.popover("Note", icon=":material/edit_note:", type="tertiary", key=f"{key}.more"):
        exact_score("Exact score", value, key=f"{key}.exact", on_score=score)
        if value is None:
            st.caption("A note is kept with the score: give the score first.")
            return
        write_note = partial(actions.note_turn, user, message_id, turn, value)
        note_input("Note", note, key=f"{key}.note", on_note=write_note)
        st.button(
            "Clear the score",
            key=f"{key}.clear",
            icon=":material/backspace:",
            on_click=score,
            args=(None,),
        )


def _state_badge(value: float | None) -> str:
    if value is None:
        return ":orange-badge[not scored]"
    return f":green-badge[{score_text(value)} saved]"


def _others(message: Message, user: User) -> str:
    others = [score for score in message.scores if score.rater != user.name]
    return "".join(
        f"  :gray-badge[{plain(score.rater)} {score_text(score.value)}]" for score in others
    )
