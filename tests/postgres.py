"""A real PostgreSQL server of the tests' own, started from Debian's packages, on a socket only."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

PACKAGED = Path("/usr/lib/postgresql")
HOW = "These tests need PostgreSQL: apt-get install -y postgresql"

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server.

    Attributes:
        binaries: Folder of its programs.
        folder: Folder of its data and its socket.
        account: Whom it runs as, because it refuses to run as root; None for ourselves.
    """

    binaries: Path
    folder: Path
    account: str | None

    def new_database(self, template: str = "template1") -> str:
        """Create a database and return its name."""
        name = f"everyturn{next(_numbers)}"
        self.run("createdb", *self._there, "--template", template, "--strategy", "file_copy", name)
        return name

    def url(self, name: str) -> str:
        """Return what DATABASE_URL says to use a database."""
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs to its end."""
        # Its output goes to a file, not a pipe: the server that pg_ctl starts keeps it open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(self.binaries / program), *arguments],
                user=self.account,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
            )
            output.seek(0)
            assert done.returncode == 0, f"{program}: {output.read().decode()}"

    @property
    def _there(self) -> tuple[str, ...]:
        return ("--host", str(self.folder), "--username", "postgres")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server with nothing in it; it ends, and its data go, with the block."""
    folders = sorted(PACKAGED.glob("*/bin"), key=lambda path: int(path.parent.name))
    assert folders, HOW
    # Not in pytest's folder: that one only its owner may enter, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="everyturn-pg-", dir="/tmp"))
    account = "postgres" if os.geteuid() == 0 else None
    if account is not None:
        entry = pwd.getpwnam(account)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    server = PostgresServer(binaries=folders[-1], folder=folder, account=account)
    data = str(folder / "data")
    # Nothing here has to outlive a power cut.
    options = (
        f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=200"
        " -c fsync=off -c full_page_writes=off"
    )
    try:
        server.run(
            "initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync"
        )
        log = str(folder / "log")
        server.run("pg_ctl", "--pgdata", data, "--log", log, "--wait", "-o", options, "start")
        try:
            yield server
        finally:
            server.run("pg_ctl", "--pgdata", data, "--mode", "immediate", "--wait", "stop")
    finally:
        shutil.rmtree(folder)
