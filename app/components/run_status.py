"""Where a run stands: its badge, its progress, and the time left by measured speed."""

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import streamlit as st

from app import data
from app.components.format import ago, exact_time, plain
from db.enums import RunStatus
from db.records import Run, StepMetric

REFRESH_S = 2.0
"""How often the live parts of a page look for something new."""

RECENT_STEPS = 30
"""How many of the latest steps tell how long the next ones will take."""

_BADGES: dict[RunStatus, tuple[Literal["gray", "blue", "orange", "green", "red"], str]] = {
    RunStatus.QUEUED: ("gray", ":material/hourglass_empty:"),
    RunStatus.STARTING: ("blue", ":material/pending:"),
    RunStatus.RUNNING: ("blue", ":material/play_arrow:"),
    RunStatus.STOPPING: ("orange", ":material/stop_circle:"),
    RunStatus.FINISHED: ("green", ":material/check:"),
    RunStatus.FAILED: ("red", ":material/error:"),
    RunStatus.STOPPED: ("gray", ":material/stop:"),
    RunStatus.INTERRUPTED: ("orange", ":material/power_off:"),
}


def status_badge(status: RunStatus) -> None:
    """Show a run's status as a coloured word with an icon."""
    colour, icon = _BADGES[status]
    st.badge(status.value, color=colour, icon=icon)


def status_icon(status: RunStatus) -> str:
    """Return the icon that stands for a status, as Markdown in its colour."""
    colour, icon = _BADGES[status]
    return f":{colour}[{icon}]"


def progress_line(run: Run) -> None:
    """Show how much is done, what is being done, and how long it will take."""
    st.progress(shown_progress(run), text=progress_text(run))


def shown_progress(run: Run) -> float:
    """Return the share of the work done as a progress bar takes it, 0 to 1."""
    return min(max(run.progress, 0.0), 1.0)


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
    """Return the estimated seconds until the last step is done; None if it cannot be told."""
    if run.status is not RunStatus.RUNNING:
        return None
    recent = data.latest_step_metrics(run.id, most=RECENT_STEPS)
    return estimate_left_s(run, [step for step in recent if step.attempt == run.attempt])


def estimate_left_s(run: Run, recent: Sequence[StepMetric]) -> float | None:
    """Return the mean time of the latest steps times the steps that remain; None without any.

    Loading the model and measuring the data beforehand take a time that says nothing about a
    step's, and what comes after the last step (samples, saving) is no part of the progress: neither
    counts. How many steps there are follows from the share that the steps so far are of the work.

    Args:
        run: The run.
        recent: The latest steps of its present attempt, in order.
    """
    if not recent or not 0 < run.progress < 1:
        return None
    epochs = int(run.config.get("epochs", 1))
    steps_an_epoch = (recent[-1].step + 1) / run.progress / epochs
    planned = max(round(steps_an_epoch), 1) * epochs  # each epoch has as many steps as any other
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
