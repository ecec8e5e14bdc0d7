"""Where the chat endpoint of a home answers, for programs of the same person; no torch here."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from db.settings import Settings
from trainer.runs.process import Mark, Sign, end

TOKEN_VARIABLE = "EVERYTURN_SERVE_TOKEN"
"""The environment variable that gives a server its token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server that is at work.

    Attributes:
        url: Its root, such as "http://127.0.0.1:8600"; the API is under /v1.
        token: What a client must present.
        base_model: The base model that it serves.
        device: What it holds, "cpu" or "cuda".
        pid: Its process.
        process_started_at: When that started, as `trainer.runs.process` counts.
        machine: Which machine it is on.
    """

    url: str
    token: str
    base_model: str
    device: str
    pid: int
    process_started_at: float
    machine: str

    @property
    def mark(self) -> Mark:
        """Its process, told apart from all others."""
        return Mark(machine=self.machine, pid=self.pid, started_at=self.process_started_at)

    def ask_to_leave(self, *, force: bool = False) -> None:
        """Let the server give its device up: politely (within seconds), or at once.

        Politely means that replies in progress end with a word that says why.
        """
        if self.mark.sign() is Sign.ALIVE:
            end(self.pid, self.process_started_at, force=force)


def read_address(settings: Settings) -> Address | None:
    """Return where the server of a home answers; None if there is none that lives."""
    try:
        address = Address(**json.loads(settings.serve_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return address if address.mark.sign() in (Sign.ALIVE, Sign.ELSEWHERE) else None


@contextmanager
def announced(settings: Settings, address: Address) -> Iterator[None]:
    """Tell the owner's other programs, and nobody else, how to reach the server."""
    path = settings.serve_file
    _write_for_owner(path, json.dumps(asdict(address)))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _write_for_owner(path: Path, text: str) -> None:
    """Write a file that nobody but its owner can read, not even for a moment."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.rename(path)
