"""One short message about what the last action did."""

import streamlit as st

from app import state


def show_notice() -> None:
    """Show the message, once; it is Markdown and holds nobody's text unescaped."""
    notice = state.NOTICE.get()
    if notice:
        st.toast(notice)
        state.NOTICE.clear()
