"""The top of a run's page: what it is, where it stands, how to stop or resume it, how it ended."""

from datetime import UTC, datetime

import streamlit as st

from app import data, routes
from app.components.format import ago, counted, exact_time, plain
from app.components.run_actions import may_act, resume, run_menu, stop, waiting_actions
from app.components.run_failure import show_failed, show_interrupted
from app.components.run_status import duration, progress_line, run_time_s, status_badge
from db.enums import RunStatus, StopStage
from db.records import Run
from trainer.config import TrainConfig
from trainer.runs.launch import can_resume
from trainer.runs.reconcile import STOP_GRACE

_STAGES = {
    StopStage.ASKED: "**Asked to stop.** It ends the turn it is at and writes a checkpoint.",
    StopStage.TERMINATED: "**Its process was told to end**, because it did not stop by itself.",
    StopStage.KILLED: "**Its process was killed**, because it did not end when told to.",
}
_NEXT = {
    StopStage.ASKED: "its process is told to end",
    StopStage.TERMINATED: "its process is killed",
    StopStage.KILLED: "that is tried again",
}


def render_title(run: Run) -> None:
    """Show the run's name, its state, and what can be done with it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(plain(run.name), anchor=False, width="content")
        status_badge(run.status)
        st.space("stretch")
        run_menu(run)


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


def render_progress(run: Run, config: TrainConfig) -> None:
    """Show how far the run is, and the button that stops it; after its end, how it ended."""
    if run.status.has_ended:
        _render_end(run, config)
        return
    if run.status is RunStatus.QUEUED:
        _render_waiting(run)
        return
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        if run.status is RunStatus.STARTING:
            st.progress(0.0, text="The run's process is starting…")
        else:
            progress_line(run)
    stopping = run.status is RunStatus.STOPPING
    if may_act():
        right.button(
            "Stopping…" if stopping else "Stop",
            icon=":material/stop:",
            disabled=stopping,
            width="stretch",
            key="stop_run",
            on_click=stop,
            args=(run.id,),
            help="Ends the run after the turn it is at, and keeps what it has learned so far.",
        )
    if stopping:
        st.caption(f":material/stop_circle: {stage_text(run, datetime.now(UTC))}")


def stage_text(run: Run, now: datetime) -> str:
    """Return how far a stop has gone, and what comes next and when, as Markdown."""
    stage = run.stop_stage or StopStage.ASKED
    since = run.stop_stage_at or run.stop_requested_at or now
    left = STOP_GRACE[stage].total_seconds() - (now - since).total_seconds()
    when = f"in {duration(left)}" if left >= 1 else "at once"
    return f"{_STAGES[stage]} If it has not ended by then, {_NEXT[stage]} {when}."


def _render_waiting(run: Run) -> None:
    before = data.queue_position(run.id) or 0
    ahead = f"{counted(before, 'run')} before it" if before else "it is next"
    st.info(
        f"Waits for the device: number {before + 1} in the queue, {ahead}. It starts by itself "
        "when the device is free; until then it takes no memory.",
        icon=":material/hourglass_empty:",
    )
    waiting_actions(run)


def _render_end(run: Run, config: TrainConfig) -> None:
    spent = run_time_s(run)
    took = f" after {duration(spent)}" if spent is not None else ""
    if run.status is RunStatus.FINISHED:
        st.success(f"Finished{took}. {plain(run.message)}", icon=":material/check:")
        st.page_link(
            routes.CHAT,
            label="Chat with it",
            icon=":material/forum:",
            query_params={routes.RUN_PARAM: str(run.id)},
            help="The base model and this run's adapter, side by side.",
        )
        return
    if run.status is RunStatus.FAILED:
        show_failed(run, config, took)
    elif run.status is RunStatus.INTERRUPTED:
        show_interrupted(run, took)
    elif run.started_at is None:
        st.info("Taken out of the queue before it began.", icon=":material/close:")
    else:
        at = f": {plain(run.message)}" if run.message else ""
        st.info(
            f"Stopped{took}, at {run.progress:.0%}{at}.",
            icon=":material/stop_circle:",
        )
    if may_act() and can_resume(data.database(), run):
        begun = run.started_at is not None
        st.button(
            "Resume" if begun else "Put back into the queue",
            type="secondary" if run.status is RunStatus.FAILED else "primary",
            icon=":material/resume:",
            key="resume_run",
            on_click=resume,
            args=(run.id, run.attempt),
            help=f"Goes on from the last checkpoint, as attempt {run.attempt + 1}."
            if begun
            else "It waits behind all others.",
        )
