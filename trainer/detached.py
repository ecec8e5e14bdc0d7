"""Processes that outlive whoever started them: a session of their own, output in a file."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from db.settings import Settings
from trainer.compute_environment import COMPUTE_ENVIRONMENT
from trainer.runs.process import Mark, own_environment, own_machine, reap_in_time, start_time


def start_detached(settings: Settings, arguments: Sequence[str], log: Path) -> Mark | None:
    """Start `python -m ARGUMENTS` for this home and return its mark; None if it has ended already.

    Secrets reach it by the environment that it inherits, never by its arguments.

    Args:
        settings: The home and database that it works on.
        arguments: The module's name and what follows it.
        log: Takes what it prints; its folder is made if it is missing.

    Raises:
        OSError: if the process cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={
                **COMPUTE_ENVIRONMENT,
                **own_environment(),
                "EVERYTURN_HOME": str(settings.home),
                "DATABASE_URL": settings.database_url,
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=settings.home,
        )
    started_at = start_time(process.pid)
    reap_in_time(process.pid)
    if started_at is None:
        return None
    return Mark(machine=own_machine(), pid=process.pid, started_at=started_at)
