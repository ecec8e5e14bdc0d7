"""What a check or an import found: counts, and what became of rows that were not plain sailing."""

import streamlit as st

from app.components.cells import text_cells
from app.components.format import counted, plain
from db.records import ImportIssue, ImportReport, IssueOutcome

_OUTCOMES = {
    IssueOutcome.SKIPPED: "left out",
    IssueOutcome.REPAIRED: "repaired",
    IssueOutcome.FLAGGED: "doubtful",
    IssueOutcome.MERGED: "merged",
}

_READ = 8
"""So many remarks are spread out to be read; the rest is for those who look for it."""


def render_figures(report: ImportReport) -> None:
    """Show the counts."""
    figures = st.columns(5)
    figures[0].metric("Conversations", f"{report.conversations:,}")
    figures[1].metric("Messages", f"{report.messages:,}", help="Those of the new conversations")
    figures[2].metric(
        "Scores", f"{report.scores:,}", help="New ones, also on conversations that are here"
    )
    figures[3].metric(
        "Already here",
        f"{report.duplicates:,}",
        help="Conversations with the same words as one that is here, or as a row before. They are "
        "not imported again; scores that are new are added to them.",
    )
    skipped = sum(issue.count for issue in report.skipped)
    figures[4].metric("Rows left out", f"{skipped:,}", help="The table says why")


def render_issues(report: ImportReport) -> None:
    """Show what was left out, repaired, flagged and merged, the most important first."""
    issues = [*report.skipped, *report.issues]
    in_words = report.warnings[len(report.issues) :]
    if not issues and not in_words:
        st.caption("Nothing was left out, repaired or doubtful.")
        return
    if issues:
        several = any(issue.file for issue in issues)
        order = list(_OUTCOMES)
        issues.sort(key=lambda issue: order.index(issue.outcome))
        rows = sum(issue.count for issue in issues if issue.row)
        of_rows = f" on {counted(rows, 'row')}" if rows else ""
        st.markdown(f"**{counted(len(issues), 'remark')}{of_rows}**")
        read = [_remark(issue, several=several) for issue in issues[:_READ]]
        texts = [{head: plain(cell) for head, cell in line.items()} for line in read]
        told = "What became of rows: outcome, place, reason and what to do"
        st.table(texts, border="horizontal", hide_index=True, alt=told)
        if len(issues) > _READ:
            lines = [_line(issue, several=several) for issue in issues]
            with st.expander(f"All {counted(len(lines), 'remark')}"):
                st.dataframe(text_cells(lines), hide_index=True, alt=told)
    for words in in_words:
        st.caption(plain(words))


def _remark(issue: ImportIssue, *, several: bool) -> dict[str, str]:
    """Return a remark in few columns, so that a narrow page has room for them."""
    rows = _rows(issue)
    if issue.row:
        rows = f"row {rows}" if issue.count == 1 else f"rows {rows}"
    where = (issue.file if several else "", rows, issue.field)
    return {
        "Was": _OUTCOMES[issue.outcome],
        "Where": " · ".join(filter(None, where)),
        "Reason": issue.reason,
        "What to do": issue.remedy,
    }


def _line(issue: ImportIssue, *, several: bool) -> dict[str, str]:
    file = {"File": issue.file} if several else {}
    return {
        "Row was": _OUTCOMES[issue.outcome],
        **file,
        "Rows": _rows(issue),
        "Field": issue.field,
        "Reason": issue.reason,
        "What to do": issue.remedy,
    }


def _rows(issue: ImportIssue) -> str:
    if issue.row == 0:
        return "the file"
    named = ", ".join(str(row) for row in (issue.row, *issue.others))
    more = issue.count - 1 - len(issue.others)
    return f"{named} and {more:,} more" if more > 0 else named
