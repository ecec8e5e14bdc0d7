"""Where a run stands: its badge, its progress, the time left, and the sidebar's block."""

import re
import statistics
from datetime import UTC, datetime
from typing import Literal

import streamlit as st

from app import data, routes
from app.components.format import ago, exact_time, plain, shortened
from db.enums import RunStatus
from db.records import Run

REFRESH_S = 2.0
"""How often the live parts of a page look for something new."""

RECENT_STEPS = 30
"""How many of the latest steps tell how long the next ones will take."""

_STEP_OF = re.compile(r"step (\d+)/(\d+)")
"""Where a training run's message tells the step it is at, and how many are planned."""

_BADGES: dict[RunStatus, tuple[Literal["gray", "blue", "orange", "green", "red"], str]] = {
    RunStatus.QUEUED: ("gray", ":material/hourglass_empty:"),
    RunStatus.STARTING: ("blue", ":material/pending:"),
    RunStatus.RUNNING: ("blue", ":material/play_arrow:"),
    RunStatus.STOPPING: ("orange", ":material/stop_circle:"),
    RunStatus.FINISHED: ("green", ":material/check:"),
    RunStatus.FAILED: ("red", ":material/error:"),
    RunStatus.STOPPED: ("gray", ":material/stop:"),
}

_ACTIVE = (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.STOPPING)


def status_badge(status: RunStatus) -> None:
    """Show a run's status as a coloured word with an icon."""
    colour, icon = _BADGES[status]
    st.badge(status.value, color=colour, icon=icon)


def progress_line(run: Run) -> None:
    """Show how much is done, what is being done, and how long it will take."""
    st.progress(min(max(run.progress, 0.0), 1.0), text=progress_text(run))


def progress_text(run: Run) -> str:
    """Return "42 % · epoch 2 of 3, step 41 · 3 min left" as Markdown."""
    left = time_left_s(run)
    parts = [
        f"{run.progress:.0%}",
        plain(run.message),
        "" if left is None else f"{duration(left)} left",
    ]
    return " · ".join(part for part in parts if part)


def time_left_s(run: Run) -> float | None:
    """Return the estimated seconds until the last step is done; None if it cannot be told.

    It is the mean time of the latest steps times the steps that remain. Loading the model and
    measuring the data beforehand take a time that says nothing about a step's, and what comes after
    the last step (samples, saving) is no part of the progress: neither counts.
    """
    place = _STEP_OF.search(run.message)
    if run.status is not RunStatus.RUNNING or place is None:
        return None
    number, planned = int(place[1]), int(place[2])
    recent = data.step_metrics(run.id, after_step=max(number - 2 - RECENT_STEPS, -1))
    if not recent:
        return None
    return statistics.fmean(step.seconds for step in recent) * planned * (1 - run.progress)


def run_time_s(run: Run, now: datetime | None = None) -> float | None:
    """Return the seconds from the run's start to its end, or until now; None before it starts."""
    if run.started_at is None:
        return None
    return ((run.ended_at or now or datetime.now(UTC)) - run.started_at).total_seconds()


def duration(seconds: float) -> str:
    """Return a span of time in at most two units: "40 s", "3 min", "2 h 5 min"."""
    if seconds < 59.5:
        return f"{max(seconds, 0):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def started(run: Run) -> tuple[str, str]:
    """Return when a run started (or was asked for): in relative words, and exactly."""
    at = run.started_at or run.created_at
    return ago(at), exact_time(at)


def render_active_run() -> None:
    """Show the run that is going on, on every page; ask again by itself only while there is one."""
    active = bool(data.runs_with_status(*_ACTIVE))
    st.fragment(_active_run, run_every=REFRESH_S if active else None)(active)


def _active_run(was_active: bool) -> None:
    runs = data.runs_with_status(*_ACTIVE)
    if was_active and not runs:
        st.rerun()
    for run in runs:
        with st.container(border=True, gap="xxsmall"):
            st.page_link(
                routes.RUN,
                label=plain(shortened(run.name, 20)),
                icon=":material/monitoring:",
                query_params={routes.RUN_PARAM: str(run.id)},
            )
            left = time_left_s(run)
            text = run.status.value if left is None else f"{duration(left)} left"
            st.progress(min(max(run.progress, 0.0), 1.0), text=f"{run.progress:.0%} · {text}")
