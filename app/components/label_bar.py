"""The bar at the foot of the label page: the whole conversation's score, and where to go next."""

from functools import partial

import streamlit as st

from app.components import label_actions as actions
from app.components.format import score_text
from app.components.label_queue import Place
from app.components.layout import reading_page
from app.components.score_input import exact_score, note_input, score_picker
from db.enums import ReviewState
from db.records import Conversation, User

GUIDELINES = """
Score each reply for what it does at that point of the conversation: 1 is as good as it gets,
0 is useless or harmful, 0.5 is usable. Judge a reply by what was known then, not by how things
turned out; how the conversation as a whole went is scored down here. Leave a reply unscored if
you can't tell: an unscored turn is not trained on.

**Keys** 0–9 score the marked turn (7 is 0.7) and A gives 1.0; then the next turn is marked.
↑ ↓ turn · ← → conversation · U next unscored · S skip · F flag · Ctrl+Enter done and next ·
Ctrl+Z undo. Keys sleep while you type in a field.
"""


def render_bar(
    conversation: Conversation, user: User, place: Place, stance: ReviewState, focused: int | None
) -> None:
    """Show the bar; `focused` is the message id of the focused turn."""
    assert conversation.id is not None  # it comes from the database
    review = partial(actions.review, user, conversation.id)
    with (
        st.bottom,
        reading_page(),
        st.container(horizontal=True, vertical_alignment="center", gap="xsmall"),
    ):
        _outcome(conversation, user)
        with st.popover("How to score", icon=":material/help:", type="tertiary"):
            st.markdown(GUIDELINES)
        st.space("stretch")
        st.button(
            "Next unscored",
            shortcut="u",
            on_click=actions.next_unscored,
            args=(user, conversation.id, focused),
        )
        st.button("Undo", shortcut="Ctrl+Z", on_click=actions.undo, args=(user,))
        st.button("Skip", shortcut="s", on_click=review, args=(ReviewState.SKIPPED, place.onward))
        flagged = stance is ReviewState.FLAGGED
        st.button(
            "Unflag" if flagged else "Flag",
            shortcut="f",
            on_click=review,
            args=(ReviewState.OPEN if flagged else ReviewState.FLAGGED, None),
        )
        st.button(
            "Done, next" if place.onward is not None else "Done",
            type="primary",
            shortcut="Ctrl+Enter",
            on_click=review,
            args=(ReviewState.DONE, place.onward),
        )


def _outcome(conversation: Conversation, user: User) -> None:
    assert conversation.id is not None
    value, note = actions.own_outcome(conversation, user)
    key = f"outcome.{conversation.id}"
    score = partial(actions.score_outcome, user, conversation.id)
    told = ":orange[not scored]" if value is None else f":green[{score_text(value)} saved]"
    with st.popover(f"Overall: {told}", help="Score of the whole conversation", key=f"{key}.more"):
        st.markdown("**How well did the whole conversation go?**")
        score_picker("Score of the whole conversation", value, key=f"{key}.pick", on_score=score)
        exact_score("Exact score", value, key=f"{key}.exact", on_score=score)
        if value is None:
            st.caption("A note is kept with the score: give the score first.")
        else:
            write_note = partial(actions.note_outcome, user, conversation.id, value)
            note_input("Note", note, key=f"{key}.note", on_note=write_note)
