"""The part of the project's settings that says how runs are evaluated."""

import streamlit as st

from app import data
from db.records import ProjectSettings
from db.setting_values import MAX_TEXT_CHARS
from trainer.evaluating.held import MOST_CONVERSATIONS
from trainer.evaluating.judge import KEY_VARIABLE


def render_evaluation(settings: ProjectSettings, *, prefix: str) -> None:
    """Draw the fields; `prefix` and the setting's name make each one's key."""
    st.subheader("Evaluation", anchor=False)
    st.text_area(
        "Prompts that every run answers before and after training, one a line",
        value=settings.evaluation_prompts,
        height=120,
        max_chars=MAX_TEXT_CHARS,
        key=f"{prefix}evaluation_prompts",
        placeholder="My parcel says delivered but nothing is here.",
        help=f"Held out: no run is trained on them by this. The first {MOST_CONVERSATIONS} count; "
        "each answer takes as long as a reply in the chat.",
    )
    tags = data.all_tags()
    known = ["", *tags, *({settings.evaluation_tag} - {"", *tags})]
    st.selectbox(
        "Tag of held-out conversations",
        known,
        index=known.index(settings.evaluation_tag),
        format_func=lambda tag: tag or "None",
        key=f"{prefix}evaluation_tag",
        width=320,
        help="Conversations with this tag are left out of training. Their openings are answered, "
        "and of their scored replies it is measured how much likelier training made them.",
    )
    left, right = st.columns(2)
    left.text_input(
        "Automatic judge: address",
        value=settings.judge_url,
        key=f"{prefix}judge_url",
        placeholder="https://api.example.com/v1",
        help="Root of any OpenAI-compatible API. Prompts and answers are sent there when a run has "
        f"finished. Empty: nobody is asked. Its key comes from the environment ({KEY_VARIABLE}) "
        "and is stored nowhere.",
    )
    right.text_input(
        "Automatic judge: model",
        value=settings.judge_model,
        key=f"{prefix}judge_model",
        help="As the endpoint names it.",
    )
