"""Runs as forks of one process that has loaded torch: real processes, without seconds of loading.

`python -m tests.forking SOCKET` serves; `Forks` asks it. What a fork executes is the command line's
`main`, in a session of its own, with its output in a file, as the launcher has it.
"""

import importlib
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from db.settings import Settings
from trainer.remote.access import child_variables
from trainer.runs.folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Forks:
    """The door to the serving process."""

    socket: Path

    def start(
        self,
        arguments: list[str],
        *,
        log: Path,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        hook: tuple[str, str] | None = None,
    ) -> int:
        """Start `python -m trainer ARGUMENTS` and return its process id.

        Args:
            arguments: Those of the command line.
            log: Takes what the process prints.
            cwd: Where it works.
            environment: What it has beside the server's environment.
            hook: (module, name of a mapping and key of a function in it) to be called first.
        """
        request = {
            "arguments": arguments,
            "log": str(log),
            "cwd": str(cwd or log.parent),
            "environment": dict(environment or {}),
            "hook": hook,
        }
        return self._ask(request)

    def wait(self, pid: int, *, timeout_s: float = 120) -> int:
        """Wait for a process's end; return its exit status, or minus the signal that ended it."""
        deadline = time.monotonic() + timeout_s
        while (status := self._ask({"status_of": pid})) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {pid} still runs")
            time.sleep(0.02)
        return status

    def _ask(self, request: dict[str, Any]) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(connection.makefile().readline())

    def start_run(
        self,
        settings: Settings,
        run_id: int,
        endpoint_key: str = "",
        *,
        hook: tuple[str, str] | None = None,
    ) -> int:
        """Do what `trainer.runs.launch.start_process` does."""
        return self.start(
            ["run", str(run_id)],
            log=RunFolder(settings.run_dir(run_id)).log,
            cwd=settings.home,
            environment={
                "EVERYTURN_HOME": str(settings.home),
                "DATABASE_URL": settings.database_url,
                **child_variables(endpoint_key),
            },
            hook=hook,
        )


def serve(path: str) -> None:
    """Load what runs need, then fork one process a request."""
    import peft  # noqa: F401, PLC0415 - loaded once, for all forks
    import torch  # noqa: PLC0415

    import trainer.__main__  # noqa: PLC0415
    import trainer.runs.launch  # noqa: PLC0415
    import trainer.runs.worker  # noqa: PLC0415

    torch.set_num_threads(1)
    ended: dict[int, int] = {}
    trainer.runs.launch.start_process = Forks(socket=Path(path)).start_run  # what a run starts next
    asker = os.getppid()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        door.settimeout(1)
        while os.getppid() == asker:
            try:
                connection, _ = door.accept()
            except TimeoutError:
                _reap(ended)
                continue
            with connection:
                request = json.loads(connection.makefile().readline())
                _reap(ended)
                if "status_of" in request:
                    answer = ended.get(request["status_of"])
                else:
                    answer = os.fork()
                    if answer == 0:
                        door.close()
                        connection.close()
                        _become(request)
                connection.sendall(json.dumps(answer).encode() + b"\n")


def _reap(ended: dict[int, int]) -> None:
    """Read the ends of forks, so that none stays in the process table."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0] != 0:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])


def _become(request: dict[str, Any]) -> None:
    """Turn this fork into the process that was asked for."""
    status = 1
    try:
        os.setsid()
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)
        os.chdir(request["cwd"])
        os.environ.update(request["environment"])
        if request["hook"] is not None:
            module, name = request["hook"]
            importlib.import_module(module).HOOKS[name]()
        status = importlib.import_module("trainer.__main__").main(request["arguments"])
    except BaseException:  # noqa: BLE001 - the fork's edge: never back into the server's loop
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def start_server(folder: Path) -> tuple[Forks, subprocess.Popen[bytes]]:
    """Start the serving process and wait until it is there."""
    path = folder / "forks.socket"
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    server = subprocess.Popen([sys.executable, "-m", "tests.forking", str(path)], env=environment)
    deadline = time.monotonic() + 120
    while not path.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the forking process did not come up")
        time.sleep(0.05)
    return Forks(socket=path), server


if __name__ == "__main__":
    serve(sys.argv[1])
