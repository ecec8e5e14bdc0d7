"""A run's log stays small, however much its process prints: the process changes files by itself."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trainer.runs.folder import OLD_LOGS, RunFolder

LOG_LIMIT_BYTES = 2_000_000
"""Size at which a log file is full; there are never more than `OLD_LOGS` full ones beside it."""

LOOK_EVERY_S = 0.5


@contextmanager
def kept_small(folder: RunFolder) -> Iterator[None]:
    """Turn the log over while the block runs, each time it is full.

    Standard output and error are one file, which the process got from the launcher. Nobody reads
    it through a pipe, so nothing can hold the run up. Does nothing if they are not that file.
    """
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_EVERY_S):
            with suppress(OSError):  # a full disk, a folder that is gone: the run finds out itself
                turn_over(folder)

    thread = threading.Thread(target=look, name="log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def turn_over(folder: RunFolder) -> None:
    """Begin a new log file if standard error goes to the present one and that is full.

    The descriptors are exchanged at once, so that no line is lost. What was printed between two
    looks beyond the limit goes, but for the newest part.
    """
    output = os.fstat(sys.stderr.fileno())
    if output.st_size <= LOG_LIMIT_BYTES or not _is_file(folder.log, output):
        return
    for age in range(OLD_LOGS, 1, -1):
        younger = folder.log.with_name(f"{folder.log.name}.{age - 1}")
        if younger.exists():
            younger.replace(folder.log.with_name(f"{folder.log.name}.{age}"))
    full = folder.log.with_name(f"{folder.log.name}.1")
    folder.log.replace(full)
    fresh = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(fresh, stream.fileno())
    os.close(fresh)
    _cut(full)


def _is_file(path: Path, status: os.stat_result) -> bool:
    return path.exists() and os.path.samestat(path.stat(), status)


def _cut(path: Path) -> None:
    """Keep the last part of a file that has grown far beyond the limit."""
    too_much = path.stat().st_size - LOG_LIMIT_BYTES
    if too_much <= LOG_LIMIT_BYTES:
        return
    with path.open("rb") as file:
        file.seek(too_much)
        kept = file.read()
    path.write_bytes(b"[earlier lines were dropped]\n" + kept)
