"""Keeps the focused turn in view: a piece of browser code without any look of its own."""

import streamlit as st

_SCROLL = """
export default function (component) {
  const card = component.parentElement.getRootNode().host ?? component.parentElement;
  const turn = card.closest('[data-testid="stVerticalBlock"]') ?? card;
  const place = turn.getBoundingClientRect();
  if (place.top < 70 || place.bottom > window.innerHeight - 210) {
    turn.scrollIntoView({ block: "center", behavior: "instant" });
  }
}
"""

_mount = st.components.v2.component("everyturn_focus", html="<span></span>", js=_SCROLL)


def keep_in_view(key: str) -> None:
    """Bring the surrounding container into view whenever `key` is another than before."""
    _mount(key=f"focus.{key}", height="content")
