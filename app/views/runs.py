"""Runs: every training run with its state, its progress and whether it learns."""

import streamlit as st

from app import data, routes
from app.components.errors import fragment, show_failure
from app.components.format import ago, counted, exact_time, plain, shortened
from app.components.run_actions import may_act, run_menu, waiting_actions
from app.components.run_status import (
    REFRESH_S,
    duration,
    progress_text,
    run_time_s,
    shown_progress,
    status_badge,
)
from app.metrics import learning_of
from db.enums import RunStatus
from db.errors import NotFoundError
from db.records import Run

PAGE_RUNS = 20
NAME_WIDTH, FIGURES_WIDTH = 290, 420
"""In pixels: beside each other on a wide page, below each other on a narrow one."""

NAME_CHARS = 36


def render() -> None:
    """Draw the page."""
    runs = data.runs()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.title("Runs", anchor=False, width="stretch")
        if len(runs) > 1 and st.button("Compare", icon=":material/compare_arrows:"):
            st.switch_page(routes.COMPARE)
        if may_act() and st.button("Launch a run", type="primary", icon=":material/rocket_launch:"):
            st.switch_page(routes.LAUNCH)
    if not runs:
        st.info(
            "A run trains the model on your scores in the background; you watch it here and take "
            "the adapter away. There is none yet.",
            icon=":material/monitoring:",
        )
        return
    show_failure()
    waiting = data.runs_with_status(RunStatus.QUEUED)
    if waiting:
        st.subheader(f"Waiting for the device ({len(waiting)})", anchor=False)
        for run in waiting:
            _row(run)
        st.subheader("Running and ended", anchor=False)
    others_than_waiting = [run for run in runs if run.status is not RunStatus.QUEUED]
    pages = -(-len(others_than_waiting) // PAGE_RUNS)
    page = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
    for run in others_than_waiting[(page - 1) * PAGE_RUNS : page * PAGE_RUNS]:
        _row(run)


def _row(run: Run) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        with st.container(width=NAME_WIDTH):
            st.page_link(
                routes.RUN,
                label=f"**{plain(shortened(run.name, NAME_CHARS))}**",
                help=plain(run.name) if len(run.name) > NAME_CHARS else None,
                query_params={routes.RUN_PARAM: str(run.id)},
            )
            method = str(run.config.get("preset", ""))
            st.caption(
                f"run {run.id} · {plain(method)} · {plain(run.base_model)} · "
                f"{counted(run.conversations, 'conversation')}"
            )
        with st.container(width=FIGURES_WIDTH):
            if run.status.has_ended:
                _figures(run)
            else:
                fragment(REFRESH_S)(_live_figures)(run)
        run_menu(run)


def _live_figures(drawn: Run) -> None:
    """Draw what changes while the run goes on; a new status redraws the whole list."""
    try:
        run = data.run(drawn.id)
    except NotFoundError:
        st.rerun()
    if run.status is not drawn.status:
        st.rerun()
    _figures(run)


def _figures(run: Run) -> None:
    if run.status is RunStatus.QUEUED:
        _waiting(run)
        return
    status, middle, when = st.columns([3, 2, 2], vertical_alignment="center")
    with status:
        status_badge(run.status)
        if run.status in (RunStatus.RUNNING, RunStatus.STOPPING):
            st.progress(shown_progress(run), text=progress_text(run))
    with middle:
        _learning(run)
    with when:
        at = run.started_at or run.created_at
        spent = run_time_s(run)
        took = f"  \ntook {duration(spent)}" if run.ended_at and spent is not None else ""
        st.caption(f"{ago(at)}{took}", help=exact_time(at))


def _waiting(run: Run) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        status_badge(run.status)
        place = (data.queue_position(run.id) or 0) + 1
        st.caption(f"number {place} in the queue", width="content")
    waiting_actions(run)


def _learning(run: Run) -> None:
    """Show the one figure that tells whether the run learns."""
    change = learning_of(run)
    if change is None:
        st.caption("not known yet" if not run.status.has_ended else "–")
        return
    colour, icon = ("green", "trending_up") if change > 0 else ("orange", "trending_flat")
    st.markdown(
        f":{colour}[:material/{icon}: {change:+.3f}]  \n:small[:gray[learning]]",
        help="Is it learning? In nats per token: the change of the replies' log-probability in the last epoch, times "
        "their advantage. Above 0: the model moves as the scores ask.",
    )


render()
