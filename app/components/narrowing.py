"""Narrowing conversations down: the filters of a rater's queue and of a run's data are these.

What is chosen is kept in the address.
"""

import streamlit as st

from app import data
from app.components.format import counted, score_text
from app.components.label_blind import hides_from
from db.records import SCORE_MAX, SCORE_MIN, ConversationFilter, ProjectSettings, User

MOST_RATERS = 100

_KEYS = ("tags", "source", "sampled_by", "flagged", "scored_by", "least_raters", "mean_score")


def choose_narrowing(user: User, project: ProjectSettings) -> ConversationFilter:
    """Draw a button behind which the filters are; return them."""
    narrowed = sum(bool(st.session_state.get(key)) for key in _KEYS)
    with st.popover(f"Filter ({narrowed})" if narrowed else "Filter", icon=":material/filter_alt:"):
        return _filters(with_scores=not hides_from(user, project))


def _filters(*, with_scores: bool) -> ConversationFilter:
    """Draw the filters; those that would tell others' scores only if they may be told."""
    options = data.filter_options()
    tags = st.multiselect("With all these tags", options.tags, key="tags", bind="query-params")
    sources = st.multiselect(
        "From one of these sources", options.sources, key="source", bind="query-params"
    )
    runs = {f"{name} ({id})": id for id, name in options.runs}
    run = st.selectbox(
        "With replies sampled by run",
        list(runs),
        index=None,
        placeholder="Any",
        key="sampled_by",
        bind="query-params",
    )
    flagged = st.toggle("Flagged by anybody", key="flagged", bind="query-params")
    rater, least_raters, score_range = None, 0, None
    if with_scores:
        rater = st.selectbox(
            "Scored by",
            options.raters,
            index=None,
            placeholder="Anybody or nobody",
            key="scored_by",
            bind="query-params",
            help="Conversations in which this person has scored a turn, whoever else has.",
        )
        least_raters = st.number_input(
            "Scored by at least (people)",
            min_value=0,
            max_value=MOST_RATERS,
            value=0,
            step=1,
            key="least_raters",
            bind="query-params",
            help="Conversations of which so many people have each scored a turn. 0 asks for none.",
        )
        if st.toggle("Only a range of mean scores", key="mean_score", bind="query-params"):
            score_range = st.slider(
                "Mean score of all turns",
                *(SCORE_MIN, SCORE_MAX),
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
        least_raters=least_raters,
        score_range=score_range,
    )


def in_words(filter: ConversationFilter) -> str:
    """Return what the filters ask for, in words; empty if they let everything through."""
    parts: list[str] = []
    if filter.tags:
        parts.append(f"tagged {' and '.join(filter.tags)}")
    if filter.sources:
        parts.append(f"from {' or '.join(filter.sources)}")
    if filter.run_id is not None:
        parts.append(f"with replies of run {filter.run_id}")
    if filter.flagged:
        parts.append("flagged")
    if filter.rater:
        parts.append(f"scored by {filter.rater}")
    if filter.least_raters:
        parts.append(f"scored by at least {counted(filter.least_raters, 'person', 'people')}")
    if filter.score_range is not None:
        low, high = filter.score_range
        parts.append(f"with a mean score of {score_text(low)} to {score_text(high)}")
    return ", ".join(parts)
