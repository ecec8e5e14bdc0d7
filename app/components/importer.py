"""Import and export of conversation files: first what would happen, then that it happens."""

import streamlit as st

from app import address, data, state
from app.components.errors import guarded, show_failure, shown
from app.components.format import counted
from db.importing import import_bytes
from db.records import ConversationFilter, ImportReport

FORMATS = {
    "auto": "Recognise it",
    "native": "EveryTurn",
    "recipe": "Recipe (turns with rewards)",
    "openai": "OpenAI messages",
    "sharegpt": "ShareGPT",
}
EXPORTS = {"native": "EveryTurn (nothing lost)", "openai": "OpenAI messages (without scores)"}


def render_importer() -> None:
    """Take a file, show what it holds and what would be left out, and import it on request."""
    show_failure()
    left, right = st.columns([3, 1])
    upload = left.file_uploader(
        "Conversation file",
        type=["json", "jsonl", "ndjson"],
        key=f"import.file.{state.UPLOAD_VERSION.get()}",
        help="JSON or JSON Lines, UTF-8. Nothing is stored before you confirm.",
    )
    file_format = right.selectbox(
        "Format", list(FORMATS), format_func=FORMATS.__getitem__, key="import.format"
    )
    if upload is None:
        st.caption(
            "Conversations exported from EveryTurn, the recipe's turns with rewards, OpenAI "
            "chat messages, or ShareGPT. Importing a file twice adds nothing."
        )
        return
    content, source = upload.getvalue(), f"import:{upload.name}"
    with shown():
        report = data.preview_import(content, format=file_format, source=source)
        _report(report)
        st.button(
            _offer(report),
            type="primary",
            disabled=report.conversations + report.scores == 0,
            on_click=_import,
            args=(content, file_format, source),
        )


@guarded
def _import(content: bytes, file_format: str, source: str) -> None:
    report = data.write(import_bytes, content, format=file_format, source=source)
    state.UPLOAD_VERSION.set(state.UPLOAD_VERSION.get() + 1)
    left_out = f"; {counted(len(report.skipped), 'row')} left out" if report.skipped else ""
    state.NOTICE.set(
        f"Imported {counted(report.conversations, 'conversation')} with "
        f"{counted(report.scores, 'score')}{left_out}."
    )
    address.open_conversation(None)


def _offer(report: ImportReport) -> str:
    if report.conversations:
        return f"Import {counted(report.conversations, 'conversation')}"
    if report.scores:
        return f"Add {counted(report.scores, 'score')} to what is here"
    return "Nothing to import"


def _report(report: ImportReport) -> None:
    name = FORMATS.get(report.format, report.format)
    with st.container(border=True):
        st.markdown(f"**What this file holds** :gray[· read as {name}]")
        figures = st.columns(4)
        figures[0].metric("New conversations", report.conversations)
        figures[1].metric("Messages", report.messages)
        figures[2].metric("Scores", report.scores)
        figures[3].metric(
            "Already here",
            report.duplicates,
            help="Conversations with the same words as one in the database. They are not "
            "imported again; scores that are new are added to them.",
        )
    for warning in report.warnings:
        with st.container(border=True):
            st.text(f"Note: {warning}")
    if report.skipped:
        st.markdown(f"**{counted(len(report.skipped), 'row')} would be left out**")
        st.dataframe(
            [
                {"Row": i.row, "Field": i.field, "Reason": i.reason, "What to do": i.remedy}
                for i in report.skipped
            ],
            hide_index=True,
            alt="Rows of the file that cannot be imported, with the reason and the remedy",
        )


def render_export(chosen: ConversationFilter, *, user_id: int, count: int) -> None:
    """Offer what the table shows, all pages of it, as a file."""
    with st.popover("Export", icon=":material/upload:", disabled=count == 0):
        file_format = st.radio(
            "Format", list(EXPORTS), format_func=EXPORTS.__getitem__, key="export.format"
        )
        st.download_button(
            f"Download {counted(count, 'conversation')}",
            data=lambda: data.export(chosen, user_id=user_id, format=file_format),
            file_name=f"conversations-{file_format}.jsonl",
            mime="application/jsonl",
            icon=":material/download:",
            type="primary",
            on_click="ignore",
        )
        st.caption("All conversations that the filters let through.")
