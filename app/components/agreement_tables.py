"""The agreement page's tables: the turns to decide, and raters in pairs."""

import streamlit as st

from app import data
from app.analysis import Agreement
from app.components.agreement_charts import coverage_chart
from app.components.cells import text_cells
from app.components.format import score_text, shortened
from app.components.run_charts import show_chart
from db.records.agreement import SharedTurn


def choose_turn(rows: list[SharedTurn]) -> SharedTurn:
    """Show the turns; return the chosen one, the first where none is."""
    any_decided = any(row.adjudicated is not None for row in rows)
    picked = st.dataframe(
        text_cells(
            {
                "Conversation": row.title or f"Conversation {row.conversation_id}",
                "Turn": row.turn + 1,
                "Reply": shortened(row.reply, 90),
                "Raters": row.raters,
                "Scores": f"{score_text(row.low)} … {score_text(row.high)}",
                "Spread": row.spread,
                **({"Decided": row.adjudicated} if any_decided else {}),
            }
            for row in rows
        ),
        hide_index=True,
        column_config={
            "Conversation": st.column_config.TextColumn(width=150),
            "Turn": st.column_config.NumberColumn(width=44),
            "Reply": st.column_config.TextColumn(width=270),
            "Raters": st.column_config.NumberColumn(width=60),
            "Scores": st.column_config.TextColumn(width=110, help="Lowest … highest"),
            "Spread": st.column_config.ProgressColumn(
                min_value=0.0,
                max_value=2.0 if rows[0].spread > 1 else 1.0,
                format="%.2f",
                width=110,
            ),
            "Decided": st.column_config.NumberColumn(format="%.2f", width=70),
        },
        key=f"agreement.rows.{rows[0].message_id}.{len(rows)}",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(rows), 284),
        alt="Turns that raters disagree on, with the range of their scores.",
    )
    return rows[picked.selection.rows[0]] if picked.selection.rows else rows[0]


def show_pairs(found: Agreement) -> None:
    """Show each two raters beside each other, and how many people scored a turn."""
    left, right = st.columns(2)
    left.dataframe(
        text_cells(
            {
                "One": pair.first,
                "Other": pair.second,
                "Turns of both": pair.turns,
                "Mean distance": pair.apart,
                "One is higher by": pair.higher,
            }
            for pair in found.pairs
        ),
        hide_index=True,
        column_config={
            "Mean distance": st.column_config.NumberColumn(format="%.2f"),
            "One is higher by": st.column_config.NumberColumn(format="%+.2f"),
        },
        alt="Each two raters on the turns that both scored.",
    )
    with right:
        show_chart(coverage_chart(found.coverage, data.project_settings().target_raters))
