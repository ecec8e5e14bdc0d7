"""Choosing a queue: which of one's conversations, in which order, narrowed down by filters.

All of it is kept in the address.
"""

from dataclasses import replace

import streamlit as st

from app import data
from app.components.format import counted
from app.components.narrowing import choose_narrowing
from db.enums import ReviewState
from db.records import ConversationFilter, ConversationOrder, ProjectSettings, User

STATES: dict[str, ReviewState | None] = {
    "Open": ReviewState.OPEN,
    "Done": ReviewState.DONE,
    "Skipped": ReviewState.SKIPPED,
    "Flagged": ReviewState.FLAGGED,
    "All": None,
}
ORDERS: dict[str, ConversationOrder] = {
    "Oldest first": "oldest",
    "Newest first": "newest",
    "Least scored first": "least_scored",
    "Random": "random",
    "Model least sure first": "uncertain",
}


def choose_filter(user: User, settings: ProjectSettings) -> ConversationFilter:
    """Draw the controls; return what the rater wants to work through."""
    state = st.selectbox(
        "Queue",
        list(STATES),
        key="queue",
        bind="query-params",
        width=130,
        help="Your own queue. Open: neither done, skipped nor flagged by you.",
    )
    order = st.selectbox("Order", list(ORDERS), key="in_order", bind="query-params", width=200)
    chosen = STATES[state]
    return replace(
        choose_narrowing(user, settings),
        review=chosen,
        order=ORDERS[order],
        raters_wanted=settings.target_raters if chosen is ReviewState.OPEN else None,
    )


def told_counts(filter: ConversationFilter, user: User) -> str:
    """Return in words how the queue's conversations are spread, and how the work goes."""
    offered = replace(filter, raters_wanted=data.project_settings().target_raters)
    counts = data.queue_counts(offered, user_id=user.id)
    parts = [
        f"{counts.conversations[state]:,} {state.value}"
        for state in ReviewState
        if counts.conversations[state]
    ]
    pace = data.todays_pace(user_id=user.id)
    if pace.scored:
        parts.append(f"{counted(pace.scored, 'turn')} scored today")
    if pace.seconds_per_turn is not None:
        parts.append(f"about {pace.seconds_per_turn:.0f} s a turn")
        if counts.left:
            parts.append(f"{duration(counts.left * pace.seconds_per_turn)} to go")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Return a time to come, roughly: "2 min", "3.5 h"."""
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min"
    return f"{seconds / 3600:.1f} h".replace(".0 h", " h")
