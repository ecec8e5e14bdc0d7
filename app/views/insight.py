"""Insight: what all scores together say, in pictures first. For admins."""

import streamlit as st

from app import analysis, routes
from app.components.cells import text_cells
from app.components.duplicates_search import render_duplicates
from app.components.errors import show_failure
from app.components.format import counted, score_text
from app.components.insight_charts import (
    NO_TAG,
    distribution_chart,
    length_chart,
    position_chart,
    rater_chart,
    tag_chart,
    unscored_chart,
)
from app.components.notice import show_notice
from app.components.run_charts import show_chart
from db.records.insight import Insight


def render() -> None:
    """Draw the page."""
    show_notice()
    st.title("Insight", anchor=False)
    show_failure()
    found = analysis.insight()
    if not found.positions:
        st.write("There is no conversation yet whose replies could be scored.")
        st.page_link(routes.CONVERSATIONS, label="Type in or import", icon=":material/add:")
        return
    if not found.counts:
        st.write(
            f"None of {counted(sum(row.turns for row in found.positions), 'turn')} has a score "
            "yet. Pictures of the scores appear here with the first of them."
        )
        st.page_link(routes.LABEL, label="Score some turns", icon=":material/grade:")
    else:
        _figures(found)
        _pictures(found)
        with st.expander("The same as tables"):
            _tables(found)
    render_duplicates()


def _figures(found: Insight) -> None:
    turns = sum(row.turns for row in found.positions)
    scored = sum(row.scored_turns for row in found.positions)
    mean = sum((row.mean or 0.0) * row.scored_turns for row in found.positions) / max(scored, 1)
    first, second, third = st.columns(3)
    first.metric("Turns without a score", f"{turns - scored:,}", border=True)
    first.caption(f"of {counted(turns, 'turn')}, {(turns - scored) / turns:.0%}")
    second.metric("Scored in full", f"{found.conversations.fully:,}", border=True)
    second.caption(
        f"conversations; {found.conversations.partly:,} in part, "
        f"{found.conversations.none:,} not at all"
    )
    third.metric("Mean score", score_text(mean), border=True)
    third.caption(f"over {counted(scored, 'scored turn')}, each as the mean of its raters")


def _pictures(found: Insight) -> None:
    rows = [
        (distribution_chart(found.counts), length_chart(found.length)),
        (position_chart(found.positions), unscored_chart(found.positions)),
        (tag_chart(found.tags), rater_chart(found.raters)),
    ]
    for charts in rows:
        for column, chart in zip(st.columns(2), charts, strict=True):
            with column:
                show_chart(chart)


def _tables(found: Insight) -> None:
    two = st.column_config.NumberColumn(format="%.2f")
    left, middle, right = st.columns(3)
    left.dataframe(
        text_cells(
            {
                "Tag": row.tag or NO_TAG,
                "Conversations": row.conversations,
                "Turns": row.turns,
                "Scored": row.scored_turns,
                "Mean": row.mean,
            }
            for row in found.tags
        ),
        hide_index=True,
        column_config={"Mean": two},
        alt="Mean score by tag.",
    )
    middle.dataframe(
        text_cells(
            {
                "Rater": row.rater,
                "Scores": row.scores,
                "Mean": row.mean,
                "Standard deviation": row.deviation,
            }
            for row in found.raters
        ),
        hide_index=True,
        column_config={"Mean": two, "Standard deviation": two},
        alt="Mean score by rater.",
    )
    right.dataframe(
        text_cells(
            {
                "Turn": row.turn + 1,
                "Turns": row.turns,
                "Scored": row.scored_turns,
                "Mean": row.mean,
            }
            for row in found.positions
        ),
        hide_index=True,
        column_config={"Mean": two},
        alt="Mean score by turn.",
    )


render()
