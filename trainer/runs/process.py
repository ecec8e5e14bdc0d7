"""Which process is which: told apart for certain, whatever clocks say and however ids are reused.

A process id alone can be reused, with its start time not; and both mean a process only on one
machine, between two starts of it.
"""

import os
import secrets
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import psutil

LAUNCHER_VARIABLES = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"),
)
"""What `accelerate launch` and `torchrun` tell the processes that they start."""


_CLAIM = " claim "


class Sign(StrEnum):
    """What can be told of a process from here."""

    ALIVE = "alive"
    GONE = "gone"
    RESTARTED = "restarted"
    """Gone, because its machine was started anew since."""
    ELSEWHERE = "elsewhere"
    """It belongs to another machine: only its heartbeat tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One process, now and for all time.

    Attributes:
        machine: The machine and which start of it, as `own_machine` says there.
        pid: Its id.
        started_at: When it started, in seconds as `start_time` counts them there.
    """

    machine: str
    pid: int
    started_at: float

    def __str__(self) -> str:
        """Return the mark as one text; `from_text` is its inverse."""
        return f"{self.pid} {self.started_at!r} {self.machine}"

    @classmethod
    def from_text(cls, text: str) -> "Mark":
        """Return the mark of a text or claim; an empty one means a process that nobody knows."""
        pid, started_at, machine = (text.partition(_CLAIM)[0] or "0 0 ").split(" ", 2)
        return cls(machine=machine, pid=int(pid), started_at=float(started_at))

    def sign(self) -> Sign:
        """Return what can be told of the process."""
        if self.machine == own_machine():
            return Sign.ALIVE if is_alive(self.pid, self.started_at) else Sign.GONE
        same_host = self.machine.partition(" ")[0] == own_machine().partition(" ")[0]
        return Sign.RESTARTED if same_host else Sign.ELSEWHERE


def own_mark() -> Mark:
    """Return the mark of this process."""
    return Mark(machine=own_machine(), pid=os.getpid(), started_at=own_start_time())


def new_claim() -> str:
    """Return a text that names this process, and one thing that it does: two threads are two.

    `Mark.from_text` returns the process.
    """
    return f"{own_mark()}{_CLAIM}{secrets.token_hex(8)}"


@cache
def own_machine() -> str:
    """Return the machine's name, and what tells this start of it from others.

    The first process tells the starts of a container apart, which share the kernel's boot.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    if not boot.exists():
        return socket.gethostname()
    return f"{socket.gethostname()} {boot.read_text().strip()} {start_time(1)}"


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
    """Return when this process started; see `start_time`."""
    started_at = start_time(os.getpid())
    assert started_at is not None  # whoever asks is there
    return started_at


def start_time(pid: int) -> float | None:
    """Return when a process started, None if there is no such process.

    On Linux in seconds since the machine's start: those since the epoch are computed from the
    clock, and change with it. Elsewhere the system keeps the time since the epoch.
    """
    stat = Path(f"/proc/{pid}/stat")
    try:
        if Path("/proc/self/stat").exists():
            # The name, in parentheses, may hold anything; the start is the 22nd field.
            ticks = int(stat.read_text().rpartition(")")[2].split()[19])
            return ticks / os.sysconf("SC_CLK_TCK")
        return psutil.Process(pid).create_time()
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int, started_at: float) -> bool:
    """Return whether that very process still runs (one that has ended but is unread does not)."""
    reap(pid)
    if start_time(pid) != started_at:
        return False
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def reap(pid: int) -> None:
    """Read our own child's end, if it has ended: only then it leaves the process table."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def reap_in_time(pid: int) -> None:
    """Wait for our own child in the background, so that none stays in the process table."""

    def wait() -> None:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)

    threading.Thread(target=wait, name=f"reaper of {pid}", daemon=True).start()


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
