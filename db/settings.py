"""Where EveryTurn keeps what it writes: the one place that reads the environment for paths."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from db.errors import SettingsError

_SQLITE_URL = re.compile(r"(?P<scheme>sqlite(\+\w+)?)://(?P<path>[^?]*)(?P<options>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Settings:
    """Folders and database address, all derived from EVERYTURN_HOME and DATABASE_URL.

    Attributes:
        home: Folder that holds everything the product writes.
        database_url: SQLAlchemy URL; a SQLite file in `home` unless DATABASE_URL says otherwise.
            A SQLite file's path is absolute, so that a child process elsewhere opens the same one.
    """

    home: Path
    database_url: str

    @property
    def runs_dir(self) -> Path:
        """Folder with one sub-folder a run, named by the run's id."""
        return self.home / "runs"

    @property
    def models_dir(self) -> Path:
        """Folder with one sub-folder for each base model that was pulled."""
        return self.home / "models"

    @property
    def imports_dir(self) -> Path:
        """Folder with one sub-folder for each import whose files are not stored yet."""
        return self.home / "imports"

    @property
    def passwords_file(self) -> Path:
        """File with the hash of each person who signs in with a password."""
        return self.home / "passwords.json"

    @property
    def serve_file(self) -> Path:
        """File that tells where the chat endpoint answers, and its token; only its owner reads it."""
        return self.home / "serve.json"

    def run_dir(self, run_id: int) -> Path:
        """Return the folder of one run (it may not exist yet)."""
        return self.runs_dir / str(run_id)


def read_settings() -> Settings:
    """Return the settings that the environment asks for; creates no folder.

    EVERYTURN_HOME defaults to `./data`, DATABASE_URL to `sqlite:///EVERYTURN_HOME/everyturn.db`.
    Relative paths begin at the working directory.

    Raises:
        SettingsError: if DATABASE_URL asks for SQLite without a file, or EVERYTURN_HOME begins
            with the home of a user who does not exist.
    """
    home = _home(os.environ.get("EVERYTURN_HOME") or "data")
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{home / 'everyturn.db'}"
    return Settings(home=home, database_url=_with_absolute_path(url))


def _home(folder: str) -> Path:
    try:
        return Path(folder).expanduser().resolve()
    except RuntimeError:  # ~somebody, or links that go round in circles
        raise SettingsError(
            f"there is no such folder: {folder}",
            where="EVERYTURN_HOME",
            remedy="Give its whole path, from / on.",
        ) from None


def _with_absolute_path(url: str) -> str:
    """Return the address with a SQLite file's path made absolute; others are the engine's affair.

    Raises:
        SettingsError: if it is SQLite in memory, which the processes of a run could not share.
    """
    match = _SQLITE_URL.fullmatch(url)
    if match is None:
        return url
    path = match["path"].removeprefix("/")
    if path in ("", ":memory:") or path.startswith("file:"):
        raise SettingsError(
            "the address names no database file",
            where="DATABASE_URL",
            remedy="Give a file, such as sqlite:////srv/everyturn.db, or unset it to use the "
            "file in EVERYTURN_HOME.",
        )
    if not match["path"].startswith("/"):
        return url
    return f"{match['scheme']}:///{Path.cwd() / path}{match['options']}"
