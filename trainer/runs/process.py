"""Processes told apart for certain: a process id alone can be reused, with its start time not."""

import os
from contextlib import suppress

import psutil


def own_start_time() -> float:
    """Return when this process started, in seconds since the epoch as the system counts them."""
    return psutil.Process().create_time()


def start_time(pid: int) -> float | None:
    """Return when a process started, None if there is no such process."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def is_alive(pid: int, started_at: float) -> bool:
    """Return whether that very process still runs (one that has ended but is unread does not)."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # our own child leaves the process table when it is read
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started_at) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end(pid: int, started_at: float, *, force: bool) -> None:
    """Ask that very process to terminate, or kill it; does nothing if it is gone."""
    if not is_alive(pid, started_at):
        return
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if force:
            process.kill()
        else:
            process.terminate()
