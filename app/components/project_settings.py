"""The form for what holds for everybody who works on the project."""

from typing import Any

import streamlit as st

from app import data, state
from app.components.errors import guarded
from app.components.evaluate_settings import render_evaluation
from app.components.label_scale import SCALES
from app.components.prose import render_prose
from db import commands
from db.enums import Aggregation, ScoreScale
from db.records import ProjectSettings
from db.setting_values import MAX_TEXT_CHARS, RANGES, project_to_json

NAMES: dict[ScoreScale, tuple[str, str]] = {
    ScoreScale.UNIT: ("0 to 1", "In steps of 0.05; a digit is the first decimal"),
    ScoreScale.STARS: ("Stars", "One to five, stored as 0, 0.25, 0.5, 0.75 and 1"),
    ScoreScale.THUMBS: ("Thumbs", "Down and up, stored as 0 and 1"),
    ScoreScale.SIGNED: ("−1 to 1", "Below 0 is worse than neither good nor bad"),
}
AGGREGATIONS: dict[Aggregation, str] = {
    Aggregation.MEAN: "Mean of all raters",
    Aggregation.MEDIAN: "Median of all raters",
    Aggregation.ADJUDICATED: "The adjudicated score, else the mean",
    Aggregation.ONE_RATER: "One rater, named at Launch",
}

_KEY = "settings.project."


def render_project() -> None:
    """Show every setting of the project with its help, and save them together."""
    settings = data.project_settings()
    with st.form("settings.project", border=False):
        _scoring(settings)
        _guidelines(settings)
        _training(settings)
        render_evaluation(settings, prefix=_KEY)
        _sign_in(settings)
        st.form_submit_button(
            "Save", type="primary", icon=":material/check:", on_click=_save, args=(settings,)
        )


def render_project_facts() -> None:
    """Show what an admin has set to a person who may not change it."""
    settings = data.project_settings()
    st.markdown(f"**Scale** · {NAMES[settings.scale][0]}. {SCALES[settings.scale].told}")
    seen = "hidden until you have scored the turn yourself" if settings.blind else "shown"
    st.markdown(f"**Scores of others** · {seen}.")
    st.markdown(f"**Raters for each conversation** · {settings.target_raters}")
    if settings.guidelines:
        with st.container(border=True):
            render_prose(settings.guidelines, key="settings.guidelines")
    st.caption("Only admins change these.")


def _scoring(settings: ProjectSettings) -> None:
    st.subheader("Scoring", anchor=False)
    st.radio(
        "Scale",
        list(NAMES),
        index=list(NAMES).index(settings.scale),
        format_func=lambda scale: NAMES[scale][0],
        captions=[caption for _, caption in NAMES.values()],
        key=f"{_KEY}scale",
        horizontal=True,
        help="How people give scores. Changing it leaves every stored score as it is.",
    )
    st.toggle(
        "Blind: hide others' scores of a turn until one's own is in",
        value=settings.blind,
        key=f"{_KEY}blind",
        help="Keeps raters independent, so that their agreement means something.",
    )
    low, high = RANGES["target_raters"]
    st.number_input(
        "Raters for each conversation (people)",
        min_value=low,
        max_value=high,
        value=settings.target_raters,
        key=f"{_KEY}target_raters",
        width=320,
        help="How many people should score a conversation. The queue offers it until they have.",
    )


def _guidelines(settings: ProjectSettings) -> None:
    st.subheader("Guidelines", anchor=False)
    st.text_area(
        "What makes a reply good (Markdown)",
        value=settings.guidelines,
        height=220,
        max_chars=MAX_TEXT_CHARS,
        key=f"{_KEY}guidelines",
        placeholder="**1** solves the problem in one reply …\n\n**0** sends the person away …",
        help="Stands beside the chat on the label page. Headings, lists, bold and links are shown "
        "as such; HTML is shown as text.",
    )
    if settings.guidelines:
        with st.expander("As raters see it", icon=":material/visibility:"):
            render_prose(settings.guidelines, key="settings.guidelines")


def _training(settings: ProjectSettings) -> None:
    st.subheader("Training", anchor=False)
    st.selectbox(
        "Where several people scored a turn, train on",
        list(AGGREGATIONS),
        index=list(AGGREGATIONS).index(settings.aggregation),
        format_func=AGGREGATIONS.__getitem__,
        key=f"{_KEY}aggregation",
        help="What Launch offers first; each run keeps the one that it was started with.",
    )
    st.text_input(
        "Tell this web address when a run ends",
        value=settings.webhook_url,
        key=f"{_KEY}webhook_url",
        placeholder="https://example.com/hook",
        help="One HTTP POST with a JSON object. Empty: nobody is told.",
    )


def _sign_in(settings: ProjectSettings) -> None:
    st.subheader("Sign-in", anchor=False)
    low, high = RANGES["session_hours"]
    st.number_input(
        "A sign-in lasts (hours)",
        min_value=low,
        max_value=high,
        value=settings.session_hours,
        key=f"{_KEY}session_hours",
        width=320,
        help="Afterwards the name and password are asked for again. Without sign-in, on this "
        "machine only, it has no meaning.",
    )


@guarded
def _save(shown: ProjectSettings) -> None:
    """Save what differs from what the form showed, so that others' changes stay."""
    before = project_to_json(shown)
    changes: dict[str, Any] = {}
    for name, old in before.items():
        typed = state.widget_value(f"{_KEY}{name}")
        new = typed.strip() if isinstance(typed, str) else typed
        if new != old:
            changes[name] = new
    if not changes:
        state.NOTICE.set("Nothing was changed.")
        return
    data.write(commands.change_project_settings, changes)
    state.NOTICE.set(f"Saved: {', '.join(changes).replace('_', ' ')}.")
