"""Held-out replies in a table: how much likelier training made each, beside its score."""

import pandas as pd
import streamlit as st

from app import auth, data
from app.components.cells import text_cell
from app.components.format import counted, shortened
from app.components.label_blind import hides_from
from trainer.evaluating.reply_change import ReplyChange


def render_changes(changes: list[ReplyChange]) -> None:
    """Show each held-out reply's change; nothing where no reply was held out."""
    if not changes:
        return
    if hides_from(auth.current_user(), data.project_settings()):
        return
    st.markdown(
        f"**Held-out replies** :gray[{counted(len(changes), 'scored reply', 'scored replies')} that "
        "the run was not trained on. Good ones should become likelier, bad ones rarer.]"
    )
    st.dataframe(
        pd.DataFrame(
            {
                "conversation": [text_cell(shortened(change.title)) for change in changes],
                "turn": [change.turn + 1 for change in changes],
                "reply": [text_cell(shortened(change.text, 80)) for change in changes],
                "score": [change.reward for change in changes],
                "before": [change.before for change in changes],
                "after": [change.after for change in changes],
                "change": [change.change for change in changes],
            }
        ),
        hide_index=True,
        column_config={
            "score": st.column_config.NumberColumn("Score", format="%.2f"),
            "before": st.column_config.NumberColumn(
                "Before (nats/token)", format="%.3f", help="Mean log-probability of its tokens."
            ),
            "after": st.column_config.NumberColumn("After (nats/token)", format="%.3f"),
            "change": st.column_config.NumberColumn(
                "Change (nats/token)", format="%+.3f", help="Above 0: training made it likelier."
            ),
        },
        key="held_out_replies",
    )
