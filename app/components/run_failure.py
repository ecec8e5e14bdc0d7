"""Why a run failed: what happened, where, what to change and by how much, and its last words."""

import streamlit as st

from app import run_files
from app.components.config_form import display, label_of
from app.components.errors import capitalised
from app.components.format import plain
from app.components.run_actions import may_act, run_again
from db.enums import ErrorKind
from db.records import Run
from trainer.config import TrainConfig
from trainer.runs.suggestions import Suggestion, suggestions

LAST_LINES = 8

REMEDIES = {
    ErrorKind.OUT_OF_MEMORY: "Launch it again with less at once, or without the longest "
    "conversations.",
    ErrorKind.MODEL: "Check the name of the base model and the network, or choose another model.",
    ErrorKind.CHAT_TEMPLATE: "Launch it again without a chat template, or with a model that has "
    "one.",
    ErrorKind.BAD_DATA: "Mend the conversations it names, then launch again.",
    ErrorKind.BAD_CONFIG: "Launch it again with other settings.",
    ErrorKind.NOT_A_NUMBER: "Launch it again with smaller steps. Its adapter was not kept.",
    ErrorKind.DISK_FULL: "Free some space on the disk, then resume it.",
    ErrorKind.KILLED: "Resume it. Did memory run out? Then launch it again with less at once.",
    ErrorKind.INTERRUPTED: "Resume it: nothing has to be mended.",
    ErrorKind.FOLDER_GONE: "Launch it again: its data are still in the database.",
    ErrorKind.ENDPOINT: "Mend what it says, then resume it: its last checkpoint is kept.",
    ErrorKind.UNEXPECTED: "The log has the details. If launching it again does not help, please "
    "report it with the log.",
}

ASK_FOR_ANOTHER = (
    *(ErrorKind.MODEL, ErrorKind.BAD_DATA, ErrorKind.BAD_CONFIG),
    *(ErrorKind.FOLDER_GONE, ErrorKind.UNEXPECTED),
)
"""Kinds where no setting can be named, but another launch may help."""


def show_failed(run: Run, config: TrainConfig, took: str) -> None:
    """Show a failure with its remedies.

    Args:
        run: The run.
        config: Its settings.
        took: " after 3 min", or nothing.
    """
    what, _, details = capitalised(run.error_text).partition("\n")
    kind = run.error_kind or ErrorKind.UNEXPECTED
    where = f"It was at {run.progress:.0%}"
    if run.message:
        where += f": {plain(run.message)}"
    st.error(
        f"**The run failed{took}.** {plain(what)}  \n{where}.  \n**What to do:** {REMEDIES[kind]}",
        icon=":material/error:",
    )
    changes = suggestions(kind, config, run.error_text)
    if may_act():
        _offer(run, kind, changes)
    _last_words(run, details)


def show_interrupted(run: Run, took: str) -> None:
    """Show that the machine went down under a run: nothing is wrong with it."""
    st.warning(
        f"**Interrupted{took}, at {run.progress:.0%}.** {plain(run.error_text.partition(chr(10))[0])}",
        icon=":material/power_off:",
    )


def _offer(run: Run, kind: ErrorKind, changes: list[Suggestion]) -> None:
    """Show a button that opens the launch page with the changes made."""
    if changes:
        st.markdown("\n".join(f"- {_change(change)}. {change.why}" for change in changes))
        if st.button(
            "Launch with this change" if len(changes) == 1 else "Launch with these changes",
            type="primary",
            icon=":material/rocket_launch:",
            key="launch_changed",
        ):
            run_again(run, {change.setting: change.after for change in changes})
    elif kind in ASK_FOR_ANOTHER and st.button(
        "Launch it again",
        type="primary",
        icon=":material/rocket_launch:",
        key="launch_again",
        help="Opens the launch page filled with this run's settings.",
    ):
        run_again(run)


def _change(change: Suggestion) -> str:
    before, after = display(change.before), display(change.after)
    return f"**{label_of(change.setting)}**: {plain(before)} → **{plain(after)}**"


def _last_words(run: Run, details: str) -> None:
    """Show the end of the log; the error's own details, where it has any, folded."""
    tail = run_files.log_tail(run, LAST_LINES)
    if tail:
        st.caption("The last lines of its log; all of it is in the tab Log.")
        st.code(tail, language=None, wrap_lines=True)
    if details.strip():
        with st.expander("Details"):
            st.code(details.strip(), language=None, wrap_lines=True)
