"""Choosing a queue: which of one's conversations, in which order, narrowed down by filters.

All of it is kept in the address.
"""

from dataclasses import replace

import streamlit as st

from app import data
from app.components.format import counted
from db.enums import ReviewState, UserRole
from db.records import (
    SCORE_MAX,
    SCORE_MIN,
    ConversationFilter,
    ConversationOrder,
    ProjectSettings,
    User,
)

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
_WIDEST = (SCORE_MIN, SCORE_MAX)
_FILTERS = ("with_tags", "from_source", "from_run", "scored_by", "mean_score", "flagged_by_anyone")


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
    narrowed = sum(bool(st.session_state.get(key)) for key in _FILTERS)
    with st.popover(f"Filter ({narrowed})" if narrowed else "Filter", icon=":material/filter_alt:"):
        filter = _narrow(user, settings)
    return ConversationFilter(
        review=chosen,
        order=ORDERS[order],
        raters_wanted=settings.target_raters if chosen is ReviewState.OPEN else None,
        tags=filter.tags,
        sources=filter.sources,
        run_id=filter.run_id,
        score_range=filter.score_range,
        rater=filter.rater,
        flagged=filter.flagged,
    )


def _narrow(user: User, settings: ProjectSettings) -> ConversationFilter:
    """Draw the filters; return them alone."""
    options = data.filter_options()
    tags = st.multiselect("With all these tags", options.tags, key="with_tags", bind="query-params")
    sources = st.multiselect(
        "From one of these sources", options.sources, key="from_source", bind="query-params"
    )
    runs = {f"{name} ({id})": id for id, name in options.runs}
    run = st.selectbox(
        "With replies sampled by run",
        list(runs),
        index=None,
        placeholder="Any",
        key="from_run",
        bind="query-params",
    )
    flagged = st.toggle("Flagged by anybody", key="flagged_by_anyone", bind="query-params")
    rater, score_range = None, None
    if user.role is UserRole.ADMIN or not settings.blind:  # else it would tell others' scores
        rater = st.selectbox(
            "Scored by",
            options.raters,
            index=None,
            placeholder="Anybody or nobody",
            key="scored_by",
            bind="query-params",
        )
        if st.toggle("Only a range of mean scores", key="mean_score", bind="query-params"):
            score_range = st.slider(
                "Mean score of all turns",
                *_WIDEST,
                (0.0, SCORE_MAX),
                step=0.05,
                key="score_range",
                bind="query-params",
            )
    return ConversationFilter(
        tags=tuple(tags),
        sources=tuple(sources),
        run_id=None if run is None else runs[run],
        flagged=flagged,
        rater=rater or "",
        score_range=score_range,
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
