"""On every page: the runs that go on, those that have ended meanwhile, and the browser's title."""

import streamlit as st

from app import data, routes, state
from app.components.errors import fragment
from app.components.format import ago, exact_time, plain, shortened
from app.components.run_status import (
    REFRESH_S,
    duration,
    shown_progress,
    status_icon,
    time_left_s,
)
from db.enums import RunStatus
from db.records import Run

PRODUCT = "EveryTurn"
MOST_SHOWN = 4
"""How many ended runs the sidebar names; the list of runs has them all."""

_ALIVE = tuple(status for status in RunStatus if not status.has_ended)
_ACTIVE = tuple(status for status in RunStatus if status.has_process)


def render_news() -> None:
    """Show what the runs do; ask again by itself only while one is going on or waits."""
    state.ARRIVED_AT.get()  # from here on, ends are news
    alive = bool(data.runs_with_status(*_ALIVE))
    fragment(REFRESH_S if alive else None)(_news)(alive)


def mark_seen(run: Run) -> None:
    """Take an ended run out of the news: the person looks at it, or has put it away."""
    if run.status.has_ended:
        state.SEEN_ENDINGS.get().add((run.id, run.attempt))


def page_title(active: list[Run], ended: list[Run]) -> str:
    """Return the browser's title: what has ended unseen, else what goes on, else the product."""
    if ended:
        return f"{_SIGNS[ended[0].status]} {shortened(ended[0].name, 30)} {ended[0].status.value}"
    if active:
        return f"{active[0].progress:.0%} {shortened(active[0].name, 30)}"
    return PRODUCT


_SIGNS = {
    RunStatus.FINISHED: "✓",
    RunStatus.FAILED: "✗",
    RunStatus.STOPPED: "■",
    RunStatus.INTERRUPTED: "!",
}


def _news(was_alive: bool) -> None:
    if was_alive and not data.runs_with_status(*_ALIVE):
        st.rerun()
    active = data.runs_with_status(*_ACTIVE)
    seen = state.SEEN_ENDINGS.get()
    ended = data.runs_ended_after(state.ARRIVED_AT.get())
    news = [run for run in ended if (run.id, run.attempt) not in seen]
    st.set_page_config(page_title=page_title(active, news))
    for run in active:
        _going_on(run)
    for run in news[:MOST_SHOWN]:
        _ended(run)


def _going_on(run: Run) -> None:
    with st.container(border=True, gap="xxsmall"):
        _link(run, ":material/monitoring:")
        left = time_left_s(run)
        text = run.status.value if left is None else f"{duration(left)} left"
        st.progress(shown_progress(run), text=f"{run.progress:.0%} · {text}")


def _ended(run: Run) -> None:
    told = state.TOLD_ENDINGS.get()
    if (run.id, run.attempt) not in told:
        told.add((run.id, run.attempt))
        st.toast(f"**{plain(run.name)}** {run.status.value}.", icon=":material/notifications:")
    with st.container(border=True, gap="xxsmall"):
        _link(run, ":material/notifications:")
        with st.container(horizontal=True, vertical_alignment="center"):
            at = run.ended_at or run.created_at
            st.caption(
                f"{status_icon(run.status)} {run.status.value} {ago(at)}",
                help=exact_time(at),
                width="stretch",
            )
            st.button(
                "Put away",
                icon=":material/close:",
                type="tertiary",
                key=f"put_away_{run.id}_{run.attempt}",
                on_click=mark_seen,
                args=(run,),
            )


def _link(run: Run, icon: str) -> None:
    st.page_link(
        routes.RUN,
        label=plain(shortened(run.name, 17)),
        icon=icon,
        query_params={routes.RUN_PARAM: str(run.id)},
    )
