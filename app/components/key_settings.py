"""The form for one person's own keys on the label page."""

import string

import streamlit as st

from app import data, state
from app.components.errors import guarded
from db import commands
from db.enums import LabelAction
from db.records import DEFAULT_KEYS, User
from db.setting_values import SCORE_KEYS

ACTIONS: dict[LabelAction, str] = {
    LabelAction.PREVIOUS_TURN: "Previous turn",
    LabelAction.NEXT_TURN: "Next turn",
    LabelAction.PREVIOUS_CONVERSATION: "Previous conversation",
    LabelAction.NEXT_CONVERSATION: "Next conversation",
    LabelAction.DONE: "Done, and on to the next conversation",
    LabelAction.UNDO: "Undo",
    LabelAction.REDO: "Redo",
    LabelAction.SKIP: "Skip the conversation",
    LabelAction.FLAG: "Flag the conversation",
    LabelAction.NOTE: "Write a note",
    LabelAction.HELP: "Show the keys",
}

_BARE = (
    *("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"),
    *("Enter", "?", "/", ".", ","),
    *sorted(set(string.ascii_uppercase) - SCORE_KEYS),
)
_COMBINED = ("Ctrl+Enter", "Shift+Enter", "Ctrl+ArrowLeft", "Ctrl+ArrowRight", "Ctrl+Z", "Ctrl+Y")
CHOICES = (*_BARE, *_COMBINED, "Ctrl+Shift+Z")
"""Keys that reach a page and give no score."""

_KEY = "settings.key."


def render_keys(user: User) -> None:
    """Show the key of each action, and save them together."""
    keys = data.user_settings(user_id=user.id).keys
    st.caption(
        "Keys of the label page, for you alone. Digits, A, + and − always give or change scores. While a text field has "
        "the focus all keys are asleep."
    )
    with st.form("settings.keys", border=False):
        left, right = st.columns(2, gap="large")
        for number, (action, label) in enumerate(ACTIONS.items()):
            options = list(dict.fromkeys((*CHOICES, keys[action])))
            (left if number * 2 < len(ACTIONS) else right).selectbox(
                label,
                options,
                index=options.index(keys[action]),
                key=f"{_KEY}{action}",
                help=f"As delivered: {DEFAULT_KEYS[action]}",
            )
        with st.container(horizontal=True):
            st.form_submit_button(
                "Save", type="primary", icon=":material/check:", on_click=_save, args=(user,)
            )
            st.form_submit_button("Back to the keys as delivered", on_click=_reset, args=(user,))


@guarded
def _save(user: User) -> None:
    keys = {action: str(state.widget_value(f"{_KEY}{action}")) for action in ACTIONS}
    data.write(commands.set_keys, user_id=user.id, keys=keys)
    state.NOTICE.set("Your keys are saved.")


@guarded
def _reset(user: User) -> None:
    data.write(commands.set_keys, user_id=user.id, keys={})
    for action in ACTIONS:
        st.session_state.pop(f"{_KEY}{action}", None)
    state.NOTICE.set("Your keys are as delivered.")
