"""A web process without its pages: `python -m tests.web WHAT ...`, what runs depend on it for.

It has no torch. EVERYTURN_HOME says where the database is.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from db import queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.settings import Settings
from tests.forking import Forks
from tests.live_runs import config_for, launch, rescore_first_reply
from trainer.runs import launch as launching
from trainer.runs.reconcile import reconcile


def die(*_: object) -> int:
    """Die as by `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def start_and_die(database: Database, model: str, forks: str) -> None:
    """Start a run whose process is a fork, store a score, then die."""
    launching.start_process = Forks(socket=Path(forks)).start_run
    launch(database, _ids(database), config_for(model, epochs=4), "orphan")
    rescore_first_reply(database)
    die()


def queue_and_die(database: Database, model: str) -> None:
    """Queue a run behind the one that holds the device, then die."""
    run = launch(database, _ids(database), config_for(model), "waiting")
    assert run.status is RunStatus.QUEUED
    die()


def die_before_starting(database: Database, model: str) -> None:
    """Die between claiming a run and starting its process."""
    launching.start_process = die
    launch(database, _ids(database), config_for(model), "claimed")


def die_before_freezing(database: Database, model: str) -> None:
    """Die between making a run and writing its data."""
    launching.sha256_of = die
    launch(database, _ids(database), config_for(model), "half-made")


def compete(database: Database, model: str, started: str, runs: str) -> None:
    """Launch so many runs by tokens that a rival uses too, and reconcile until all have ended.

    Each run's process ends at once; its number is noted in a file that the rival notes them in, too.
    """

    def start_process(settings: Settings, run_id: int, endpoint_key: str) -> int:
        with Path(started).open("a") as file:
            file.write(f"{run_id}\n")
        return subprocess.Popen(["true"]).pid

    launching.start_process = start_process
    for number in range(int(runs)):
        launch(database, _ids(database), config_for(model), f"token {number}")
        reconcile(database)
    while any(not run.status.has_ended for run in queries.runs(database)):
        reconcile(database)
        time.sleep(0.05)


def wait_in_line(database: Database, model: str) -> None:
    """Launch a run while another one holds the device; print what that has loaded and started."""
    run = launch(database, _ids(database), config_for(model), "waiting")
    assert run.status is RunStatus.QUEUED
    reconcile(database)
    heavy = sorted({"torch", "transformers", "peft"} & set(sys.modules))
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    print(heavy, children)  # noqa: T201 - the test reads it


def _ids(database: Database) -> list[int]:
    return [*range(1, 9)]


if __name__ == "__main__":
    what = {
        function.__name__: function
        for function in (
            start_and_die,
            queue_and_die,
            die_before_starting,
            die_before_freezing,
            compete,
            wait_in_line,
        )
    }
    what[sys.argv[1]](open_database(), *sys.argv[2:])
