"""A database with conversations, and runs as forks of one process."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from db.engine import Database, open_database
from db.settings import Settings
from tests.forking import Forks
from tests.live_runs import add_conversations
from trainer.runs import launch


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """A database in a home of its own."""
    opened = open_database(settings)
    yield opened
    opened.close()


@pytest.fixture
def conversation_ids(database: Database) -> list[int]:
    """Eight conversations of three scored turns."""
    return add_conversations(database)


@dataclass(slots=True)
class ForkedRuns:
    """Starts each run as a fork; `hook` is what the next ones do first."""

    forks: Forks
    hook: tuple[str, str] | None = None

    def start_process(self, settings: Settings, run_id: int, endpoint_key: str) -> int:
        """Stand for `trainer.runs.launch.start_process`."""
        return self.forks.start_run(settings, run_id, endpoint_key, hook=self.hook)


@pytest.fixture
def forked(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> ForkedRuns:
    """Runs that this test launches are forks."""
    runs = ForkedRuns(forks)
    monkeypatch.setattr(launch, "start_process", runs.start_process)
    return runs
