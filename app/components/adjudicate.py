"""Deciding the score of one turn: what was said, what each rater gave, and the decision."""

import math

import streamlit as st

from app import auth, data, routes, state
from app.components.errors import guarded
from app.components.format import exact_time, plain, score_text
from app.components.transcript import render_content
from db import commands
from db.enums import Role
from db.errors import DataError
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
        st.slider(
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
        st.text_area(
            "Why (for raters to learn from)",
            value=earlier.note if earlier else "",
            max_chars=_NOTE_CHARS,
            height=90,
            key=f"{key}.note",
        )
        # Callbacks: if another decision has come in between, this form is not drawn again.
        with st.container(horizontal=True):
            st.form_submit_button(
                "Decide", type="primary", icon=":material/gavel:",
                on_click=_decide, args=(message, shared, key),
            )  # fmt: skip
            if earlier:
                st.form_submit_button(
                    "Take back", icon=":material/undo:", on_click=_take_back, args=(message, shared)
                )


def nearest_step(value: float) -> float:
    """Return the value of the scale that is nearest; half-way goes up."""
    return math.floor(value / STEP + 0.5) * STEP


@guarded
def _decide(seen: Message, shared: SharedTurn, form: str) -> None:
    """Store what the form says."""
    value, note = state.widget_value(f"{form}.value"), state.widget_value(f"{form}.note")
    assert isinstance(value, float)
    _store(seen, shared, value, str(note or "").strip())


@guarded
def _take_back(seen: Message, shared: SharedTurn) -> None:
    """Leave the turn undecided."""
    _store(seen, shared, None, "")


def _store(seen: Message, shared: SharedTurn, value: float | None, note: str) -> None:
    """Store a decision, unless the turn is not what it was when it was shown.

    Raises:
        DataError: if it has.
    """
    _require_as_seen(seen, shared)
    event = data.write(
        commands.adjudicate,
        user_id=auth.current_user().id,
        message_id=shared.message_id,
        value=value,
        note=note,
    )
    if event is not None:
        done = "taken back" if value is None else f"decided: {score_text(value)}"
        state.NOTICE.set(f"The turn's score is {done}.")


def _require_as_seen(seen: Message, shared: SharedTurn) -> None:
    """Refuse a decision on something that is not what the decider saw.

    Raises:
        DataError: if the turn was edited or decided meanwhile.
    """
    conversation = data.conversation(shared.conversation_id)
    now = next((m for m in conversation.messages if m.id == shared.message_id), None)
    if now is None or (now.content, now.adjudicated) == (seen.content, seen.adjudicated):
        return  # of a turn that is gone, the command says so
    if now.content != seen.content:
        what = "its text was edited"
    elif now.adjudicated:
        what = f"{now.adjudicated.rater} decided {score_text(now.adjudicated.value)}"
    else:
        what = "its decision was taken back"
    raise DataError(
        f"this turn changed while you looked at it: {what}; your decision was not stored",
        where=f"turn {shared.turn + 1} of conversation {shared.conversation_id}",
        remedy='Look at it with "Decided ones, too", and decide it again if you must.',
    )


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
