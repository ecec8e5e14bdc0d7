"""Which process is which: told apart for certain, and the one that leads where several run together.

A process id alone can be reused, with its start time not.
"""

import os
from contextlib import suppress

import psutil

LAUNCHER_VARIABLES = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"),
)
"""What `accelerate launch` and `torchrun` tell the processes that they start."""


def is_launched() -> bool:
    """Return whether a launcher started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_leader() -> bool:
    """Return whether this process speaks and writes for all that a launcher started with it."""
    return not is_launched() or os.environ.get("RANK", "0") == "0"


def own_environment() -> dict[str, str]:
    """Return the environment without what makes this process one of several."""
    return {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES}


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
