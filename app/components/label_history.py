"""What became of a turn: who gave it which score when, and what it said before."""

import streamlit as st

from app import data
from app.components.format import ago, exact_time, plain, score_text
from app.components.prose import render_prose
from app.components.transcript import folded
from db.records import TurnChange

_MOST = 20


def render_history(message_id: int, *, only: str | None) -> None:
    """Offer the history of a turn; it is read when somebody opens it.

    Args:
        message_id: The turn.
        only: The only person whose scores may be shown; None for everybody's.
    """
    more = st.popover(
        "History", icon=":material/history:", on_change="rerun", key=f"history.{message_id}"
    )
    if not more.open:
        return
    with more:
        changes = [
            change
            for change in data.turn_history(message_id)
            if only is None or change.old_text is not None or change.who == only
        ]
        if not changes:
            st.caption("Nothing has happened to this turn yet.")
        for index, change in enumerate(changes[:_MOST]):
            _render(change, key=f"history.{message_id}.{index}")
        if len(changes) > _MOST:
            st.caption(f"and {len(changes) - _MOST} earlier changes")


def _render(change: TurnChange, *, key: str) -> None:
    st.markdown(f"{_told(change)}  \n:gray[{ago(change.at)}]", help=exact_time(change.at))
    if change.note:
        st.text(f"Note: {change.note}")
    if change.old_text is not None:
        render_prose(folded(change.old_text), key=key, markdown=False)


def _told(change: TurnChange) -> str:
    """Return one change in words, as Markdown."""
    who = plain(change.who) or "Somebody"
    if change.old_text is not None:
        held = "kept the scores" if change.scores_kept else "took the scores away"
        return f"**{who}** changed the text and {held}. It said before:"
    name = f"**{who}**{' decided' if change.adjudicates else ''}"
    values = f"{score_text(change.old_value)} → {score_text(change.new_value)}"
    if change.old_value == change.new_value:
        values = "a new note" if change.note else "the note was taken away"
    how = " (undo)" if change.is_undo else " (redo)" if change.is_redo else ""
    by = f", by {plain(change.changed_by)}, who changed the text" if change.changed_by else ""
    return f"{name}: {values}{how}{by}"
