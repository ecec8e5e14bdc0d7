"""The chat's server as a process of its own: started on demand, found again, ended for a run.

No torch here: the web process starts it, and a run's process ends it. What is known about it lies
in files of EVERYTURN_HOME, so that any process of the same person sees the same.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from filelock import FileLock

from db.settings import Settings
from trainer.catalog import has_gpu
from trainer.compute_environment import COMPUTE_ENVIRONMENT
from trainer.config import Device
from trainer.runs.folder import write_json
from trainer.runs.process import (
    Mark,
    Sign,
    end,
    own_environment,
    own_machine,
    reap_in_time,
    start_time,
)
from trainer.serving.address import TOKEN_VARIABLE, Address, read_address

IDLE_S = 300
"""After so many seconds in which nobody asked, the server ends and gives its memory back."""

USUAL_LOADING_S = 15.0
"""How long loading takes where nobody has measured it yet."""

LEAVING_S = 8.0
"""How long a server may take to leave before it is killed; replies end with a word meanwhile."""

_POLL_S = 0.05


class Stage(StrEnum):
    """Where the server stands."""

    OFF = "off"
    LOADING = "loading"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The chat's server as it is now.

    Attributes:
        stage: Where it stands.
        base_model: What it serves, or is about to.
        address: Where it answers, once it is ready.
        loading_s: How long it has been loading.
        usual_s: How long that takes as a rule.
        problem: Why the last one that was started never answered; empty if it did.
    """

    stage: Stage
    base_model: str = ""
    address: Address | None = None
    loading_s: float = 0.0
    usual_s: float = USUAL_LOADING_S
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """What is noted of a server that was started, until the next one is.

    Attributes:
        base_model: What it serves.
        device: What it holds, by a guess without torch.
        process: Its `Mark`, as text.
        at: When, in seconds since the epoch.
        usual_s: How long the one before took to load.
    """

    base_model: str
    device: str
    process: str
    at: float
    usual_s: float


def chat_device() -> str:
    """Return what a chat's server will hold on this machine: "cuda" or "cpu"."""
    return Device.CUDA.value if has_gpu() else Device.CPU.value


def look(settings: Settings) -> Worker:
    """Return how the server is; never waits."""
    started = _read_started(settings)
    usual_s = started.usual_s if started else USUAL_LOADING_S
    address = read_address(settings)
    if address is not None and address.mark.sign() is Sign.ALIVE:
        return Worker(stage=Stage.READY, base_model=address.base_model, address=address)
    if started is None:
        return Worker(stage=Stage.OFF)
    if Mark.from_text(started.process).sign() is Sign.ALIVE:
        return Worker(
            stage=Stage.LOADING,
            base_model=started.base_model,
            loading_s=max(time.time() - started.at, 0.0),
            usual_s=usual_s,
        )
    return Worker(stage=Stage.OFF, problem=_problem(settings), usual_s=usual_s)


def start(settings: Settings, base_model: str) -> None:
    """Start a server, unless one is at work or on its way: two clicks, or two tabs, start one.

    Raises:
        OSError: if it cannot be started.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    with _locked(settings):
        before = look(settings)
        if before.stage is not Stage.OFF:
            return
        pid = start_process(settings, base_model)
        started_at = start_time(pid) or 0.0  # of one that has ended already: found gone at once
        reap_in_time(pid)
        mark = Mark(machine=own_machine(), pid=pid, started_at=started_at)
        started = _Started(
            base_model=base_model,
            device=chat_device(),
            process=str(mark),
            at=time.time(),
            usual_s=before.usual_s,
        )
        write_json(_started_file(settings), asdict(started))


def start_process(settings: Settings, base_model: str) -> int:
    """Start the server in a session of its own, its output in its log; return its process id.

    Raises:
        OSError: if it cannot be started.
    """
    environment = {
        **COMPUTE_ENVIRONMENT,
        **own_environment(),
        TOKEN_VARIABLE: secrets.token_urlsafe(24),  # told by the file alone, not by the log
        "EVERYTURN_HOME": str(settings.home),
        "DATABASE_URL": settings.database_url,
        "PYTHONUNBUFFERED": "1",
    }
    with log_file(settings).open("wb") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "trainer", "serve", "--port", "0"),
                *("--model", base_model, "--idle-timeout", str(IDLE_S)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=settings.home,
            env=environment,
        ).pid


def log_file(settings: Settings) -> Path:
    """Return the file with what the server printed."""
    return settings.home / "serve.log"


def note_loaded(settings: Settings, loading_s: float) -> None:
    """Keep how long loading took, so that the next one's progress can be told."""
    with _locked(settings):
        started = _read_started(settings)
        if started is not None:
            noted = replace(started, usual_s=max(loading_s, 1.0))
            write_json(_started_file(settings), asdict(noted))


def make_room(settings: Settings, device: str) -> bool:
    """End the server if it holds a device, and wait until it is gone; return whether there was one.

    It is told first, so that replies in progress end with a word, and killed if it does not go.
    """
    held = list(_holders(settings, device))
    for mark in held:
        end(mark.pid, mark.started_at, force=False)
        if not _gone_within(mark, LEAVING_S):
            end(mark.pid, mark.started_at, force=True)
            _gone_within(mark, LEAVING_S)
    return bool(held)


def _holders(settings: Settings, device: str) -> Iterator[Mark]:
    """Yield the processes of servers that hold a device, or are about to."""
    address = read_address(settings)
    if address is not None and address.device == device and address.mark.sign() is Sign.ALIVE:
        yield address.mark
    started = _read_started(settings)
    if started is not None and started.device == device:
        mark = Mark.from_text(started.process)
        if mark.sign() is Sign.ALIVE and (address is None or mark != address.mark):
            yield mark


def _gone_within(mark: Mark, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while mark.sign() is Sign.ALIVE:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _problem(settings: Settings) -> str:
    """Return the last line of a server that ended before it answered anybody; else nothing."""
    try:
        with log_file(settings).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16_000))
            lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    if any(" answers on http" in line for line in lines):
        return ""
    said = [line for line in lines if not line.startswith("Loading ")]
    return said[-1] if said else "Its process ended before the model was loaded."


def _locked(settings: Settings) -> FileLock:
    return FileLock(settings.home / ".serve-start.lock")


def _started_file(settings: Settings) -> Path:
    return settings.home / "serve-started.json"


def _read_started(settings: Settings) -> _Started | None:
    try:
        started = _Started(**json.loads(_started_file(settings).read_text(encoding="utf-8")))
        Mark.from_text(started.process)
    except (OSError, ValueError, TypeError):
        return None
    return started
