"""Keeps the focused turn in view: a piece of browser code without any look of its own."""

from streamlit.components import v2

_SCROLL = """
export default function (component) {
  const here = component.parentElement.getRootNode().host ?? component.parentElement;
  const turn = here.closest('[data-testid="stChatMessage"]') ?? here;
  const place = turn.getBoundingClientRect();
  if (place.top < 70 || place.bottom > window.innerHeight - 210) {
    turn.scrollIntoView({ block: "center", behavior: "instant" });
  }
}
"""

_mount = v2.component("everyturn_focus", html="<span></span>", js=_SCROLL)


def keep_in_view(key: str) -> None:
    """Bring the surrounding container into view whenever `key` is another than before."""
    _mount(key=f"focus.{key}", height="content")
