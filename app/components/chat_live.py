"""Replies while they come in: what the model is doing, the words so far, and a way to stop it."""

import streamlit as st

from app import routes
from app.chat_jobs import Job, job_of
from app.chat_models import base_title, lane_title
from app.chat_server import Phase
from app.chat_tree import Chat, Turn
from app.components.chat_actions import stop
from app.components.errors import fragment
from app.components.format import plain
from app.components.prose import render_prose
from app.components.run_status import duration, time_left_s
from db.records import Run

REFRESH_S = 0.3
"""How often the words so far are drawn."""

LETTERS = "ABCD"


def render_live(chat: Chat, turn: Turn) -> None:
    """Show a turn's replies as they grow; the whole page is drawn anew once they are there."""
    fragment(REFRESH_S)(_live)(chat.id, turn)


def column_title(turn: Turn, lane: str) -> str:
    """Return what stands above a reply: the model's name, or a letter while it is hidden."""
    letter = LETTERS[turn.order.index(lane)]
    if not turn.blind:
        return lane_title(lane)
    return letter if turn.hides_names else f"{letter} · {lane_title(lane)}"


def _live(chat_id: str, turn: Turn) -> None:
    job = job_of(chat_id)
    if job is None or job.turn.id != turn.id:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        _doing(job)
        st.button(
            "Don't wait" if job.phase is Phase.WAITING else "Stop",
            icon=":material/stop:",
            key="chat.stop",
            on_click=stop,
            args=(chat_id,),
        )
    if job.phase is not Phase.ANSWERING:
        return
    lanes = [lane for lane in turn.order if lane in job.growing]
    for lane, column in zip(lanes, st.columns(len(lanes)), strict=True):
        growing = job.growing[lane]
        with column, st.container(border=True):
            letter = LETTERS[turn.order.index(lane)]
            st.markdown(f"**{letter if turn.blind else lane_title(lane)}**")
            render_prose(growing.text or "…", key=f"chat.live.{turn.id}.{letter}")


def _doing(job: Job) -> None:
    match job.phase:
        case Phase.WAITING if job.run is not None:
            st.info(waiting_text(job.run), icon=":material/hourglass_empty:")
        case Phase.WAITING:
            st.info(f"Waits for {plain(job.waits_for)}.", icon=":material/hourglass_empty:")
        case Phase.ANSWERING:
            tokens = sum(len(growing.token_ids) for growing in job.growing.values())
            told = f"{tokens} tokens so far" if tokens else "Reads what was said…"
            st.caption(f":material/more_horiz: {told}", width="stretch")
        case _:
            seen, title = job.loading, plain(base_title(job.chat.base_model))
            share, told = 0.0, f"Starting {title}…"
            if seen is not None:
                share = min(seen.loading_s / max(seen.usual_s, 1.0), 0.97)
                told = f"Loading {title}: {seen.loading_s:.0f} s, usually {seen.usual_s:.0f} s"
            st.progress(share, text=told)


def waiting_text(run: Run) -> str:
    """Return, as Markdown, that a run holds the device, and how long that may last."""
    left = time_left_s(run)
    soon = "" if left is None else f", about {duration(left)} more"
    where = "the GPU" if run.device == "cuda" else "this machine's processors"
    return (
        f"**{plain(run.name)}** trains on {where}{soon}; runs go first. What you ask waits here "
        "and is answered when the run has ended."
    )


def render_waiting_notice(run: Run) -> None:
    """Say before anything is asked that a run holds the device."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(waiting_text(run), icon=":material/hourglass_empty:")
        st.page_link(
            routes.RUN,
            label="See the run",
            icon=":material/monitoring:",
            query_params={routes.RUN_PARAM: str(run.id)},
        )
