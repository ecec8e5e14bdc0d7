"""The page that people see before they are signed in."""

import streamlit as st

from app import auth
from app.components.errors import show_error
from app.components.sign_in_form import render_sign_in_form
from app.gate import OUTCOME_PARAM, SIGN_IN_PATH, WAIT, WRONG, base_path
from app.sign_in_ways import ways

WIDTH = 420
"""In pixels."""


def render(reason: auth.NotSignedInError) -> None:
    """Draw the page: every way to sign in that is set up.

    Args:
        reason: Why nobody is signed in.
    """
    here = ways()
    with st.container(horizontal_alignment="center"), st.container(width=WIDTH):
        st.title("Sign in", anchor=False)
        if isinstance(reason, auth.NotAdmittedError) or not here.any:
            show_error(reason)
        _outcome()
        if here.password:
            render_sign_in_form(f"{base_path()}{SIGN_IN_PATH}")
        for provider in here.providers:
            name = "your organisation" if provider == "default" else provider.capitalize()
            if st.button(f"Sign in with {name}", key=f"sign_in.{provider}", width="stretch"):
                st.login(None if provider == "default" else provider)
        if isinstance(reason, auth.NotAdmittedError):
            st.button("Sign in as somebody else", on_click=auth.sign_out, width="stretch")


def _outcome() -> None:
    """Say what became of the last attempt; the same words for a wrong name and a wrong password."""
    outcome = st.query_params.get(OUTCOME_PARAM)
    if outcome == WRONG:
        st.error("Name or password is wrong.", icon=":material/error:")
    elif outcome == WAIT:
        st.error(
            "There were too many failed attempts. Try again in 15 minutes, or ask an admin for a "
            "new password.",
            icon=":material/hourglass_top:",
        )
