"""The chat that is being scored: the marked turn carries the controls, every turn its state."""

from dataclasses import dataclass
from functools import partial

import streamlit as st

from app.components import label_actions as actions
from app.components.format import plain, score_text
from app.components.key_names import printed, with_action
from app.components.label_acting import act
from app.components.label_history import render_history
from app.components.label_scale import Scale
from app.components.score_input import exact_score, note_input, score_buttons
from app.components.transcript import (
    AVATARS,
    PAGE_MESSAGES,
    heading,
    page_of_messages,
    render_content,
    render_system,
    render_tools,
    turn_numbers,
)
from db.enums import LabelAction
from db.records import Conversation, Message, User, UserSettings

NOTE_KEY = "turn-note"
"""Key of the container with the marked turn's note: the key for notes looks for it."""


def turn_key(turn: int) -> str:
    """Return the key of a turn's container; the browser finds it by this, too."""
    return f"turn-{turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How the chat is shown.

    Attributes:
        focus: The marked turn, counted from 0.
        notes: Own notes that wait for a score, by message.
        markdown: Whether messages are shown with Markdown's look, or letter by letter.
        is_blind: Whether others' scores are hidden until one's own is in.
    """

    user: User
    scale: Scale
    settings: UserSettings
    focus: int
    notes: dict[int, str]
    markdown: bool
    is_blind: bool


def render_turns(conversation: Conversation, look: Look) -> None:
    """Show the chat."""
    messages, turns = conversation.messages, turn_numbers(conversation.messages)
    key = f"label.{conversation.id}"
    render_system(conversation.system, key=key, markdown=look.markdown)
    render_tools(conversation.tools)
    focused = turns.index(look.focus) if look.focus in turns else 0
    first = page_of_messages(len(messages), key=key, shown=focused)
    for message, turn in list(zip(messages, turns, strict=True))[first : first + PAGE_MESSAGES]:
        if turn is not None:
            _render_turn(message, turn, look)
            continue
        with st.chat_message(message.role, avatar=AVATARS[message.role]):
            st.markdown(heading(message, None))
            render_content(message, key=f"message.{message.id}", markdown=look.markdown)


def _render_turn(message: Message, turn: int, look: Look) -> None:
    assert message.id is not None  # it comes from the database
    value, note = actions.own_score(message, look.user)
    note = note or look.notes.get(message.id, "")
    is_focused = turn == look.focus
    whole = st.container(border=is_focused, key=turn_key(turn))
    with whole, st.chat_message(message.role, avatar=AVATARS[message.role]):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            name = heading(message, turn, colour="blue" if is_focused else "gray")
            st.markdown(f"{name} {_state(value, look.scale)}{_others(message, look)}")
            st.space("stretch")
            if is_focused:
                _neighbours(look)
            else:
                st.button(
                    "Change" if value is not None else "Score",
                    key=f"mark.{message.id}",
                    type="tertiary",
                    on_click=act,
                    args=(f"turn:{turn}",),
                )
        render_content(message, key=f"message.{message.id}", markdown=look.markdown)
        if note and not is_focused:
            st.text(f"Note: {note}")
    if is_focused:
        with whole:
            _controls(message.id, turn, value, note, look)


def _controls(message_id: int, turn: int, value: float | None, note: str, look: Look) -> None:
    key = f"turn.{message_id}"
    score_buttons(
        look.scale, value, key=f"{key}.keys", on_score=lambda choice: act(f"score:{choice}")
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if look.scale.is_fine:
            exact_score(
                "Exact score",
                value,
                scale=look.scale,
                key=f"{key}.exact",
                on_score=partial(actions.score_turn, look.user, message_id),
                width=150,
            )
        with st.container(key=NOTE_KEY):
            note_input(
                "Note",
                note,
                hint=f"Why this score? (key {printed(look.settings.keys[LabelAction.NOTE])})",
                key=f"{key}.note",
                on_note=partial(actions.note_turn, look.user, message_id),
            )
        st.button(
            "Clear",
            key=f"{key}.clear",
            icon=":material/backspace:",
            help="Take the score away: the turn is then not scored, which is not 0.",
            disabled=value is None,
            on_click=act,
            args=(f"clear:{turn}",),
        )
        render_history(message_id, only=look.user.name if look.is_blind and value is None else None)


def _neighbours(look: Look) -> None:
    """Offer the turns above and below; the two stay side by side on a narrow screen."""
    keys = look.settings.keys
    with st.container(horizontal=True, width="content", gap="xsmall"):
        for action, what in (
            (LabelAction.PREVIOUS_TURN, "Mark the turn above"),
            (LabelAction.NEXT_TURN, "Mark the turn below"),
        ):
            st.button(
                with_action("", keys, action),
                key=f"go.{action}",
                help=what,
                type="tertiary",
                on_click=act,
                args=(f"go:{action}",),
            )


def _state(value: float | None, scale: Scale) -> str:
    if value is None:
        return ":orange-badge[not scored]"
    return f":green-badge[{scale.text(value)} saved]"


def _others(message: Message, look: Look) -> str:
    others = [score for score in message.scores if score.rater != look.user.name]
    told = "".join(
        f"  :gray-badge[{plain(score.rater)} {score_text(score.value)}]" for score in others
    )
    if message.adjudicated is not None:
        told += f"  :violet-badge[decided {score_text(message.adjudicated.value)}]"
    return told
