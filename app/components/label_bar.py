"""The bar at the foot of the label page: the whole conversation's score, and where to go next."""

from functools import partial

import streamlit as st

from app.components import label_actions as actions
from app.components.key_names import with_action
from app.components.label_acting import act
from app.components.label_scale import Scale
from app.components.score_input import exact_score, note_input, score_buttons
from db.enums import LabelAction, ReviewState
from db.records import Conversation, User, UserSettings


def render_bar(
    conversation: Conversation,
    user: User,
    scale: Scale,
    settings: UserSettings,
    stance: ReviewState,
) -> None:
    """Show the bar, which stays in place while the chat scrolls."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        _outcome(conversation, user, scale)
        _remaining(conversation, user, scale)
        _button("Undo", LabelAction.UNDO, "undo", settings)
        _button("Redo", LabelAction.REDO, "redo", settings)
        st.space("stretch")
        _button("Skip", LabelAction.SKIP, "skip", settings, help="Not now: on to the next one")
        flagged = stance is ReviewState.FLAGGED
        _button(
            "Unflag" if flagged else "Flag",
            LabelAction.FLAG,
            "flag:off" if flagged else "flag:on",
            settings,
            help="Something is wrong with this conversation: somebody should look at it",
        )
        if stance in (ReviewState.DONE, ReviewState.SKIPPED):
            st.button("Reopen", help="Back into the open queue", on_click=act, args=("reopen",))
        _button("Done, next", LabelAction.DONE, "done", settings, is_main=True)


def _button(
    text: str,
    action: LabelAction,
    does: str,
    settings: UserSettings,
    *,
    is_main: bool = False,
    help: str | None = None,
) -> None:
    st.button(
        with_action(text, settings.keys, action),
        key=f"bar.{action}",
        type="primary" if is_main else "secondary",
        help=help,
        on_click=act,
        args=(does,),
    )


def _remaining(conversation: Conversation, user: User, scale: Scale) -> None:
    turns = conversation.assistant_messages
    missing = sum(actions.own_score(turn, user)[0] is None for turn in turns)
    with st.popover("All the rest", disabled=missing == 0):
        st.markdown(f"Give all **{missing}** turns without your score the same one:")
        score_buttons(
            scale,
            None,
            key="remaining",
            on_score=lambda value: act(f"remaining:{value}"),
            with_keys=False,
        )
        st.caption("Scores that are there stay as they are. One undo takes all of it back.")


def _outcome(conversation: Conversation, user: User, scale: Scale) -> None:
    assert conversation.id is not None  # it comes from the database
    value, note = actions.own_outcome(conversation, user)
    key = f"outcome.{conversation.id}"
    score = partial(actions.score_outcome, user, conversation.id)
    told = ":orange[not scored]" if value is None else f":green[{scale.text(value)} saved]"
    with st.popover(f"Overall: {told}", help="Score of the whole conversation", key=f"{key}.more"):
        st.markdown("**How well did the whole conversation go?**")
        score_buttons(scale, value, key=f"{key}.pick", on_score=score, with_keys=False)
        if scale.is_fine:
            exact_score(
                "Exact score", value, scale=scale, key=f"{key}.exact", on_score=score, width=200
            )
        if value is None:
            st.caption("A note is kept with this score: give the score first.")
            return
        write_note = partial(actions.note_outcome, user, conversation.id)
        note_input("Note", note, key=f"{key}.note", on_note=write_note)
        st.button("Clear the score", key=f"{key}.clear", on_click=score, args=(None,))
