"""Deciding the score of one turn: what was said, what each rater gave, and the decision."""

import math

import streamlit as st

from app import auth, data, routes, state
from app.components.errors import guarded
from app.components.format import exact_time, plain, score_text
from app.components.transcript import render_content
from db import commands
from db.enums import Role
from db.records import Conversation, Message, Score
from db.records.agreement import SharedTurn

STEP = 0.05
_NOTE_CHARS = 2000


def render_decision(shared: SharedTurn, conversation: Conversation) -> None:
    """Show one turn that raters disagree on, their scores beside it, and the form to decide."""
    found = next((m for m in conversation.messages if m.id == shared.message_id), None)
    if found is None:
        st.info("This turn has been deleted meanwhile.", icon=":material/info:")
        return
    said, given = st.columns([3, 2], gap="large")
    with said:
        _show_turn(conversation, found, shared)
    with given:
        _show_scores(found)
        _form(found, shared)


def _show_turn(conversation: Conversation, message: Message, shared: SharedTurn) -> None:
    before = conversation.messages[: conversation.messages.index(message)]
    asked = next((m for m in reversed(before) if m.role is Role.USER), None)
    if asked is not None:
        with st.chat_message("user", avatar=":material/person:"):
            render_content(asked, key=f"decide.asked.{shared.message_id}")
    with st.chat_message("assistant", avatar=":material/smart_toy:"):
        render_content(message, key=f"decide.reply.{shared.message_id}")
    st.page_link(
        routes.CONVERSATIONS,
        label=f"Turn {shared.turn + 1} of the whole conversation",
        icon=":material/open_in_new:",
        query_params={routes.CONVERSATION_PARAM: str(shared.conversation_id)},
    )


def _show_scores(message: Message) -> None:
    for score in sorted(message.scores, key=lambda score: -score.value):
        st.markdown(f"**{score_text(score.value)}** · {plain(score.rater)}")
        if score.note:
            st.text(score.note)
    if message.adjudicated is not None:
        st.markdown(f":green-badge[:material/gavel: {decided_text(message.adjudicated)}]")
        if message.adjudicated.note:
            st.text(message.adjudicated.note)


def decided_text(score: Score) -> str:
    """Return a decided score in words, as Markdown."""
    when = f", {exact_time(score.at)}" if score.at else ""
    return f"{score_text(score.value)}, decided by {plain(score.rater)}{when}"


def _form(message: Message, shared: SharedTurn) -> None:
    earlier = message.adjudicated
    low = -1.0 if shared.low < 0 or (earlier and earlier.value < 0) else 0.0
    start = earlier.value if earlier else shared.mean
    # Another decision elsewhere, or other scores, begin another form.
    key = f"decide.{shared.message_id}.{start:.4f}"
    with st.form(key, border=True):
        value = st.slider(
            "Decided score",
            min_value=low,
            max_value=1.0,
            value=min(1.0, max(low, nearest_step(start))),
            step=STEP,
            format="%.2f",
            key=f"{key}.value",
            help="Training takes it in place of the raters' scores, unless the run is told "
            "otherwise. What the raters gave stays as it is.",
        )
        note = st.text_area(
            "Why (for raters to learn from)",
            value=earlier.note if earlier else "",
            max_chars=_NOTE_CHARS,
            height=90,
            key=f"{key}.note",
        )
        with st.container(horizontal=True):
            if st.form_submit_button("Decide", type="primary", icon=":material/gavel:"):
                _decide(shared.message_id, value, note or "")
                st.rerun()
            if earlier and st.form_submit_button("Take back", icon=":material/undo:"):
                _decide(shared.message_id, None, "")
                st.rerun()


def nearest_step(value: float) -> float:
    """Return the value of the scale that is nearest; half-way goes up."""
    return math.floor(value / STEP + 0.5) * STEP


@guarded
def _decide(message_id: int, value: float | None, note: str) -> None:
    event = data.write(
        commands.adjudicate,
        user_id=auth.current_user().id,
        message_id=message_id,
        value=value,
        note=note.strip(),
    )
    if event is not None:
        done = "taken back" if value is None else f"decided: {score_text(value)}"
        state.NOTICE.set(f"The turn's score is {done}.")


@guarded
def undo() -> None:
    """Take back this person's latest decision."""
    event = data.write(commands.undo_adjudication, user_id=auth.current_user().id)
    state.NOTICE.set(
        "There is no decision of yours to take back."
        if event is None
        else "Your latest decision is taken back."
    )


@guarded
def redo() -> None:
    """Decide again what this person's latest undo took back."""
    event = data.write(commands.redo_adjudication, user_id=auth.current_user().id)
    if event is None:
        state.NOTICE.set("There is no undone decision of yours to make again.")
    elif event.new_value is None:
        state.NOTICE.set("Redone: the turn has no decided score.")
    else:
        state.NOTICE.set(f"Redone: the turn is decided, {score_text(event.new_value)}.")
