"""Agreement: how far raters agree, and the turns that somebody should decide. For admins."""

import streamlit as st

from app import analysis, data, routes
from app.analysis import Agreement
from app.components.adjudicate import redo, render_decision, undo
from app.components.agreement_charts import alpha_reading, leaning_chart, spread_chart
from app.components.agreement_tables import choose_turn, show_pairs
from app.components.errors import show_failure
from app.components.format import counted
from app.components.notice import show_notice
from app.components.run_charts import show_chart
from app.components.sharing_out import render_sharing_out

MOST_ROWS = 100


def render() -> None:
    """Draw the page."""
    show_notice()
    st.title("Agreement", anchor=False)
    show_failure()
    found = analysis.agreement()
    if not found.shared:
        _empty(found)
        return
    _figures(found)
    left, right = st.columns(2)
    with left:
        show_chart(spread_chart(found.spreads))
    with right:
        show_chart(leaning_chart(found.pairs))
    _decisions()
    with st.expander("Pairs of raters, and how many people scored a turn"):
        show_pairs(found)
    with st.expander("Share the work out"):
        render_sharing_out()


def _empty(found: Agreement) -> None:
    st.write(
        "No turn has been scored by more than one person yet, so there is nothing to compare. "
        f"Of {counted(found.turns, 'turn')}, "
        f"{sum(row.turns for row in found.coverage if row.raters):,} have a score."
    )
    st.write("Ask a second person for some conversations: twenty that two people scored say a lot.")
    st.page_link(routes.SETTINGS, label="Raters for each conversation", icon=":material/group:")
    st.subheader("Share the work out", anchor=False)
    render_sharing_out()


def _figures(found: Agreement) -> None:
    alpha, shared, spread = st.columns(3)
    alpha.metric(
        "Krippendorff's α",
        "–" if found.alpha is None else f"{found.alpha:.2f}".replace("-", "−"),
        border=True,
        help="1: full agreement. 0: no better than chance. For interval data: a miss of 0.4 weighs "
        "four times as much as one of 0.2. "
        + (
            f"Estimated from {counted(found.alpha_turns, 'turn')} drawn by chance."
            if found.alpha_turns < found.shared
            else f"From all {counted(found.alpha_turns, 'turn')} with several scores."
        ),
    )
    alpha.caption(alpha_reading(found.alpha))
    shared.metric("Shared turns", f"{found.shared:,}", border=True)
    shared.caption(
        f"that several people scored, of {found.turns:,} ({found.shared / found.turns:.0%})"
    )
    spread.metric("Median spread", f"{found.median_spread:.2f}", border=True)
    spread.caption("highest minus lowest score of a turn; half lie closer together")


def _decisions() -> None:
    st.subheader("Turns to decide", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        least = st.slider(
            "At least this far apart", 0.0, 1.0, 0.3, 0.05, format="%.2f", width=300,
            key="apart", bind="query-params",
            help="Highest minus lowest score of the turn.",
        )  # fmt: skip
        decided_too = st.toggle("Decided ones, too", key="decided", bind="query-params")
        st.space("stretch")
        st.button("Undo my latest decision", icon=":material/undo:", on_click=undo)
        st.button(
            "Redo", icon=":material/redo:", on_click=redo, help="Make again what you undid last"
        )
    undecided = not decided_too
    count = data.count_shared_turns(least_spread=least, undecided=undecided)
    if not count:
        st.success("No turn is that far apart and still to be decided.", icon=":material/check:")
        return
    rows = data.shared_turns(least_spread=least, undecided=undecided, limit=MOST_ROWS)
    shown = f", the {len(rows)} furthest apart shown" if count > len(rows) else ""
    st.caption(f"{counted(count, 'turn')}{shown}. Choose one to see it; the first is shown now.")
    chosen = choose_turn(rows)
    render_decision(chosen, data.conversation(chosen.conversation_id))


render()
