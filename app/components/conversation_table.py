"""The table of conversations: search, filters, pages, and what can be done with many at once."""

import streamlit as st

from app import address, auth, data, state
from app.components.cells import text_cells
from app.components.confirm import confirm_delete
from app.components.errors import guarded
from app.components.export_panel import render_export
from app.components.format import counted, row_title
from app.components.label_blind import hides_from
from app.components.sharing_out import render_assign
from db import commands
from db.records import (
    ConversationFilter,
    ConversationOrder,
    ConversationRow,
    ScoredFilter,
    User,
)

PAGE_ROWS = 50
SCORED: dict[str, ScoredFilter] = {
    "Any": "any",
    "Not scored": "none",
    "Partly": "partly",
    "Fully": "fully",
}
ORDERS: dict[str, ConversationOrder] = {
    "Newest": "newest",
    "Oldest": "oldest",
    "Title": "title",
    "Least scored": "least_scored",
}


def render_table(user: User) -> None:
    """Show the conversations that the filters let through; one click on a row opens it."""
    head = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        told = st.empty()
        st.space("stretch")
        archived = st.toggle("Archived", key="archived", bind="query-params")
        with head:
            chosen = _filter(archived)
        count = data.count_conversations(chosen, user_id=user.id)
        told.markdown(f":gray[{counted(count, 'conversation')}]", width="content")
        render_export(chosen, user_id=user.id, count=count)
    if count == 0:
        st.info("No conversation matches. Loosen the search or the filters.")
        return
    pages = -(-count // PAGE_ROWS)
    body = st.container()
    page = 1
    if pages > 1:
        page = st.pagination(pages, key="page", bind="query-params")
    rows = data.conversation_rows(
        chosen, user_id=user.id, limit=PAGE_ROWS, offset=(page - 1) * PAGE_ROWS
    )
    with body:
        _rows(rows, with_means=not hides_from(user, data.project_settings()))


def _filter(archived: bool) -> ConversationFilter:
    """Draw the search field and the filters; they are kept in the address."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Search",
            key="search",
            bind="query-params",
            placeholder="Title, system prompt or any message",
            icon=":material/search:",
        )
        tags = st.multiselect("Tags", data.all_tags(), key="tags", bind="query-params")
        sources = st.multiselect("Source", data.all_sources(), key="source", bind="query-params")
        scored = st.selectbox("Scored", list(SCORED), key="scored", bind="query-params", width=140)
        order = st.selectbox("Order", list(ORDERS), key="order", bind="query-params", width=150)
    return ConversationFilter(
        text=text or "",
        tags=tuple(tags),
        sources=tuple(sources),
        scored=SCORED[scored],
        order=ORDERS[order],
        archived=archived,
    )


def _rows(rows: list[ConversationRow], *, with_means: bool) -> None:
    above = st.container()
    chosen = st.dataframe(
        text_cells(
            {
                "Title": row_title(row),
                "Scored": f"{row.scored_turns} / {row.turns}",
                **({"Mean score": row.mean_score} if with_means else {}),
                "Tags": list(row.tags),
                "Source": row.source,
                "Review": row.review.value,
                "Updated": row.updated_at,
            }
            for row in rows
        ),
        hide_index=True,
        column_config={
            "Scored": st.column_config.TextColumn(
                width=62, help="Turns with a score / turns (replies that can be scored)"
            ),
            "Mean score": st.column_config.ProgressColumn(
                min_value=0.0, max_value=1.0, format="%.2f", width=86
            ),
            "Tags": st.column_config.ListColumn(width=165),
            "Source": st.column_config.TextColumn(width=172),
            "Review": st.column_config.TextColumn(width=60, help="Your review of it"),
            "Updated": st.column_config.DatetimeColumn(format="distance", width=128),
        },
        key=f"conversations.{state.TABLE_VERSION.get()}",
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"] if auth.is_admin() else ["single-cell"],
        height=min(38 + 35 * len(rows), 738),
        alt="Conversations: title, turns, scored turns, mean score, tags, source, last change",
    )
    if chosen.selection.cells:
        forget_selection()
        address.open_conversation(rows[chosen.selection.cells[0][0]].id)
        st.rerun()
    with above:
        if not auth.is_admin():
            st.caption("Click a row to open it.")
        elif chosen.selection.rows:
            _many([rows[index] for index in chosen.selection.rows])
        else:
            st.caption("Click a row to open it; tick rows to tag, archive or delete them together.")


def _many(rows: list[ConversationRow]) -> None:
    ids = [row.id for row in rows]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{counted(len(ids), 'conversation')} chosen**")
        with st.popover("Add a tag", icon=":material/sell:"):
            tag = st.text_input("Tag", key="many.tag")
            st.button("Add", disabled=not tag, on_click=_tag, args=(rows, tag))
        render_assign(ids)
        all_archived = all(row.archived for row in rows)
        st.button(
            "Bring back" if all_archived else "Archive",
            icon=":material/archive:",
            on_click=archive,
            args=(ids, not all_archived),
        )
        if st.button("Delete", icon=":material/delete:"):
            confirm_delete(ids)


def forget_selection() -> None:
    """Untick every row of the table."""
    state.TABLE_VERSION.set(state.TABLE_VERSION.get() + 1)


@guarded
def archive(ids: list[int], archived: bool) -> None:
    """Put conversations out of sight, or bring them back."""
    data.write(commands.set_archived, ids, archived)
    forget_selection()
    done = "archived" if archived else "brought back"
    state.NOTICE.set(f"{counted(len(ids), 'conversation')} {done}.")


@guarded
def _tag(rows: list[ConversationRow], tag: str) -> None:
    data.write(commands.add_tags, [row.id for row in rows], (tag,))
    forget_selection()
    state.NOTICE.set(f"{counted(len(rows), 'conversation')} tagged.")
