"""The label page's keys, and the project's guidelines."""

import streamlit as st

from app.components.key_names import printed
from app.components.key_settings import ACTIONS
from app.components.label_acting import HELP
from app.components.label_scale import Scale
from app.components.prose import render_prose
from db.records import ProjectSettings, UserSettings

_NO_GUIDELINES = (
    "Score each reply for what it does at that point of the conversation. Judge it by what was "
    "known then, not by how things turned out: how the conversation as a whole went is scored "
    "with *Overall*. Leave a reply without a score if you cannot tell: it is then not trained on."
)


def render_guidelines(settings: ProjectSettings, scale: Scale) -> None:
    """Show what scores mean here."""
    render_prose(settings.guidelines.strip() or _NO_GUIDELINES, key="label.guidelines")
    st.caption(scale.told)


@st.dialog("Keys", on_dismiss=HELP.clear)
def show_help(settings: UserSettings, scale: Scale) -> None:
    """Show every key."""
    st.table(
        {
            "Key": [
                *(", ".join(map(printed, choice.keys)) for choice in scale.choices),
                *(["+, −"] if scale.is_fine else []),
                *(printed(settings.keys[action]) for action in ACTIONS),
            ],
            "What it does": [
                *(f"Score {choice.label}, on to the next turn" for choice in scale.choices),
                *(
                    ["That score, or the marked turn's, up or down by 0.05"]
                    if scale.is_fine
                    else []
                ),
                *ACTIONS.values(),
            ],
        }
    )
    st.caption(
        "Numpad digits work, too. Keys are asleep while a text field has the focus; Esc leaves it. "
        "Change them in Settings, My keys."
    )
