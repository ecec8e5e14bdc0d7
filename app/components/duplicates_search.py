"""The insight page's search for conversations that say almost the same."""

import streamlit as st

from app import analysis, data, routes
from app.components.cells import text_cells
from app.components.conversation_table import archive
from app.components.format import counted, plain, title_of
from app.components.transcript import render_transcript
from app.near_duplicates import NearDuplicate, Search
from db.records import Conversation

MOST_ROWS = 100
THRESHOLDS = {0.95: "nearly word for word", 0.8: "mostly the same", 0.6: "much in common"}


def render_duplicates() -> None:
    """Offer the search; show what it found, and the two conversations of the chosen pair."""
    st.subheader("Near-duplicates", anchor=False)
    st.caption(
        "The same words twice weigh twice in a run, and a copy among the held-out conversations "
        "makes a run look better than it is. Importing leaves exact copies out; this finds those "
        "with a few words changed."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        threshold = st.selectbox(
            "How alike",
            list(THRESHOLDS),
            index=1,
            format_func=lambda value: f"{THRESHOLDS[value]} ({value:.0%})",
            key="alike",
            bind="query-params",
            width=280,
            help="Estimated share of three-word sequences that both have.",
        )
        wanted = st.toggle("Look for them", key="duplicates", bind="query-params")
    if not wanted:
        return
    found = analysis.near_duplicates(threshold)
    if found.skipped:
        st.warning(
            f"The time was up: the newest {found.compared:,} conversations were compared, "
            f"{found.skipped:,} older ones were not.",
            icon=":material/timer_off:",
        )
    if not found.pairs:
        compared = counted(found.compared, "conversation")
        st.success(f"Of {compared} no two are that much alike.", icon=":material/check:")
        return
    _pairs(found)


def _pairs(found: Search) -> None:
    shown = found.pairs[:MOST_ROWS]
    more = f"; the {len(shown)} most alike are shown" if found.alike > len(shown) else ""
    st.caption(
        f"{counted(found.alike, 'conversation')} of {found.compared:,} "
        f"{'is' if found.alike == 1 else 'are'} like another one{more}. "
        "Choose a row to see both; the first is shown now."
    )
    conversations = _conversations(shown)
    picked = st.dataframe(
        text_cells(
            {
                "Conversation": title_of(conversations[pair.second]),
                "is like": title_of(conversations[pair.first]),
                "Similarity": pair.similarity,
            }
            for pair in shown
        ),
        hide_index=True,
        column_config={
            "Similarity": st.column_config.ProgressColumn(
                min_value=0.0, max_value=1.0, format="percent", width=120
            )
        },
        key=f"duplicates.rows.{shown[0].second}.{len(shown)}",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(shown), 284),
        alt="Pairs of conversations that say almost the same.",
    )
    chosen = shown[picked.selection.rows[0]] if picked.selection.rows else shown[0]
    for column, id in zip(st.columns(2, gap="large"), (chosen.second, chosen.first), strict=True):
        with column:
            _one(conversations[id])


def _one(conversation: Conversation) -> None:
    assert conversation.id is not None
    st.markdown(f"**{plain(title_of(conversation))}**")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            routes.CONVERSATIONS,
            label="Open",
            icon=":material/open_in_new:",
            query_params={routes.CONVERSATION_PARAM: str(conversation.id)},
        )
        st.button(
            "Archive",
            icon=":material/archive:",
            key=f"duplicates.archive.{conversation.id}",
            on_click=archive,
            args=([conversation.id], True),
            help="Out of queues, runs and exports; it can be brought back under Conversations.",
        )
    with st.container(height=360, border=True, autoscroll=False):
        render_transcript(conversation, key=f"duplicates.{conversation.id}")


def _conversations(pairs: tuple[NearDuplicate, ...]) -> dict[int, Conversation]:
    ids = sorted({id for pair in pairs for id in (pair.first, pair.second)})
    return dict(zip(ids, data.conversations(tuple(ids)), strict=True))
