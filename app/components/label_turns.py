"""The chat that is being scored: every assistant turn carries its control and its state."""

from functools import partial

import streamlit as st

from app import address
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
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            colour = "blue" if is_focused else "gray"
            title = f"{heading(message, turn, colour=colour)} {_state_badge(value)}{_others(message, user)}"
            st.markdown(title, width="content")
            st.space("stretch")
            if is_focused:
                keep_in_view(str(message.id))
                _turn_keys(turn, last_turn)
            _more(message.id, turn, user, value, note)
        render_content(message, key=f"message.{message.id}")
        score = partial(actions.score_turn, user, message.id)
        if is_focused:
            step_on = partial(score, min(turn + 1, last_turn))
            score_keys(value, key=f"{key}.keys", on_score=step_on)
        else:
            name = f"Score of turn {turn + 1}"
            score_picker(name, value, key=f"{key}.pick", on_score=partial(score, turn))
        if note:
            st.text(f"Note: {note}")


def _turn_keys(turn: int, last_turn: int) -> None:
    """Offer the neighbouring turns."""
    steps = (("Up", "Mark the turn above", turn - 1), ("Down", "Mark the turn below", turn + 1))
    for name, what, to in steps:
        st.button(
            name,
            key=f"go.{name}",
            help=what,
            type="tertiary",
            shortcut=name,
            disabled=not 0 <= to <= last_turn,
            on_click=address.open_turn,
            args=(to,),
        )


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
