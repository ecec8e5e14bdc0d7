"""The top of a run's page: what it is, where it stands, how to stop or resume it, and why it failed."""

from collections.abc import Callable

import streamlit as st

from app import data
from app.components.errors import show_error
from app.components.format import ago, counted, exact_time, plain
from app.components.run_status import duration, progress_line, run_time_s, status_badge
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.errors import EveryTurnError
from db.records import Run
from trainer.config import TrainConfig
from trainer.runs.launch import request_stop, resume_run

REMEDIES = {
    ErrorKind.OUT_OF_MEMORY: "Launch it again with half the tokens a pass (More settings, Machine), "
    "or without the longest conversations.",
    ErrorKind.MODEL: "Check the name of the base model and the network, or choose another model.",
    ErrorKind.BAD_DATA: "Mend the conversations it names, then launch again.",
    ErrorKind.BAD_CONFIG: "Launch it again with other settings.",
    ErrorKind.NOT_A_NUMBER: "Launch it again with a smaller learning rate, or with the gradient "
    "clip switched on. Its adapter was not kept.",
    ErrorKind.DISK_FULL: "Free some space on the disk, then resume it.",
    ErrorKind.KILLED: "Nothing has to be mended if the machine was switched off: resume it. "
    "Did memory run out? Then launch it again with fewer tokens a pass.",
    ErrorKind.UNEXPECTED: "The log below has the details. If launching it again does not help, "
    "please report it with the log.",
}


def render_title(run: Run) -> None:
    """Show the run's name and its state."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(plain(run.name), anchor=False, width="content")
        status_badge(run.status)


def render_facts(run: Run, config: TrainConfig) -> None:
    """Show what the run trains on what, and since when; the time grows, so draw it anew."""
    at = run.started_at or run.created_at
    facts = [
        f"run {run.id}",
        config.preset.value,
        plain(run.base_model),
        f"{counted(run.conversations, 'conversation')}, {counted(run.turns, 'turn')}",
        f"{'started' if run.started_at else 'asked for'} {ago(at)}",
    ]
    if run.attempt > 1:
        facts.append(f"attempt {run.attempt}")
    st.caption(" · ".join(facts), help=exact_time(at))


def render_progress(run: Run) -> None:
    """Show how far the run is, and the button that stops it; after its end, how it ended."""
    if run.status.has_ended:
        _render_end(run)
        return
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        if run.status is RunStatus.QUEUED:
            before = data.queue_position(run.id) or 0
            st.info(
                f"Waits for the device: number {before + 1} in the queue. It starts by itself "
                "when the run before it ends.",
                icon=":material/hourglass_empty:",
            )
        elif run.status is RunStatus.STARTING:
            st.progress(0.0, text="The run's process is starting…")
        else:
            progress_line(run)
    stopping = run.status is RunStatus.STOPPING
    clicked = right.button(
        "Stopping…" if stopping else "Stop",
        icon=":material/stop:",
        disabled=stopping,
        width="stretch",
        key="stop_run",
        help="Ends the run after the turn it is at, and keeps what it has learned so far.",
    )
    if stopping:
        st.caption(
            ":material/stop_circle: Stop asked for: it ends the turn it is at and writes a "
            "checkpoint. If that takes more than a minute, its process is ended."
        )
    if clicked:
        _ask(request_stop, run)


def _render_end(run: Run) -> None:
    spent = run_time_s(run)
    took = f" after {duration(spent)}" if spent is not None else ""
    if run.status is RunStatus.FAILED:
        _render_failure(run, took)
    elif run.status is RunStatus.STOPPED:
        st.info(
            f"Stopped{took}, at {run.progress:.0%}. {plain(run.message)}",
            icon=":material/stop_circle:",
        )
    else:
        st.success(f"Finished{took}. {plain(run.message)}", icon=":material/check:")
        return
    if st.button(
        "Resume",
        type="primary",
        icon=":material/resume:",
        key="resume_run",
        help=f"Goes on from the last checkpoint, as attempt {run.attempt + 1}.",
    ):
        _ask(resume_run, run)


def _ask(action: Callable[[Database, int], Run], run: Run) -> None:
    """Do something with the run and draw the page anew, or show why it cannot be done."""
    try:
        data.write(action, run.id)
    except EveryTurnError as error:
        show_error(error)
        return
    st.rerun()


def _render_failure(run: Run, took: str) -> None:
    """Show what happened, where and what to do; the rest of the text folded."""
    what, _, details = run.error_text.partition("\n")
    remedy = REMEDIES[run.error_kind or ErrorKind.UNEXPECTED]
    where = f"It was at {run.progress:.0%}"
    if run.message:
        where += f": {plain(run.message)}"
    st.error(
        f"**The run failed{took}.** {plain(what)}  \n{where}.  \n**What to do:** {remedy}",
        icon=":material/error:",
    )
    if details.strip():
        with st.expander("Details"):
            st.code(details.strip(), language=None, wrap_lines=True)
