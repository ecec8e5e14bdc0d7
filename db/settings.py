"""Where EveryTurn keeps what it writes: the one place that reads the environment for paths."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Folders and database address, all derived from EVERYTURN_HOME and DATABASE_URL.

    Attributes:
        home: Folder that holds everything the product writes.
        database_url: SQLAlchemy URL; a SQLite file in `home` unless DATABASE_URL says otherwise.
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

    def run_dir(self, run_id: int) -> Path:
        """Return the folder of one run (it may not exist yet)."""
        return self.runs_dir / str(run_id)


def read_settings() -> Settings:
    """Return the settings that the environment asks for; creates no folder.

    EVERYTURN_HOME defaults to `./data`, DATABASE_URL to `sqlite:///EVERYTURN_HOME/everyturn.db`.
    """
    home = Path(os.environ.get("EVERYTURN_HOME") or "data").expanduser().resolve()
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{home / 'everyturn.db'}"
    return Settings(home=home, database_url=url)
