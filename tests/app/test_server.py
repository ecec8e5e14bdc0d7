"""The real server: what it binds to, and what it serves beyond this machine."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from db import commands, queries
from db.engine import open_database
from db.enums import UserRole
from db.settings import Settings
from tests.db.building import queued_run
from trainer.runs.process import own_mark

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_hashes")]

ROOT = Path(__file__).parents[2]

Serve = Callable[..., tuple[str, psutil.Process]]


@pytest.fixture
def serve(settings: Settings) -> Iterator[Serve]:
    """Return a function that starts the app with more options; it returns address and process."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> tuple[str, psutil.Process]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings.home.mkdir(exist_ok=True)
        with (settings.home / "server.log").open("wb") as log:
            command = [sys.executable, "-m", "streamlit", "run", "app/main.py"]
            process = subprocess.Popen(
                [*command, "--server.port", str(port), *options],
                cwd=ROOT,
                env={**os.environ, "EVERYTURN_HOME": str(settings.home)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if status(f"{url}/_stcore/health") == 200:
                return url, psutil.Process(process.pid)
            time.sleep(0.1)
        raise AssertionError((settings.home / "server.log").read_text())

    yield start
    for process in started:
        process.kill()
        process.wait()


def status(url: str) -> int:
    """Return the status of a page; 0 if nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def bound_to(process: psutil.Process) -> set[str]:
    """Return the addresses that a process listens on."""
    return {c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}


def test_as_delivered_the_app_is_for_this_machine_and_needs_no_sign_in(serve: Serve) -> None:
    url, process = serve()
    assert bound_to(process) == {"127.0.0.1"}
    assert status(url) == 200


def test_beyond_this_machine_nothing_is_served_until_somebody_can_sign_in(
    serve: Serve, settings: Settings
) -> None:
    url, process = serve("--server.address", "0.0.0.0")
    assert bound_to(process) == {"0.0.0.0"}
    pages = ("/", "/label", "/static/index.html", "/_stcore/host-config", "/media/x", "/sign-in")
    assert [status(url + page) for page in pages] == [503] * len(pages)
    commands.admit_person(
        open_database(settings), "ann", role=UserRole.ADMIN, password="correct horse battery"
    )
    assert status(url) == 200  # the page that asks who it is; no restart


def test_a_dead_run_is_found_while_no_page_is_open(serve: Serve, settings: Settings) -> None:
    serve()
    database = open_database(settings)
    run = queued_run(database)
    commands.claim_next_run(database)
    commands.record_process(
        database, run.id, pid=os.getpid(), process_started_at=1.0, machine=own_mark().machine
    )
    commands.begin_run(database, run.id)
    deadline = time.monotonic() + 60
    while not queries.run(database, run.id).status.has_ended:
        assert time.monotonic() < deadline, "nobody looked after the run"
        time.sleep(0.2)
    database.close()
