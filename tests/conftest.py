"""Fixtures that several test packages share: settings of their own, tiny models, the real one."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from db.enums import RunStatus
from db.errors import EveryTurnError
from db.settings import Settings, read_settings
from tests.forking import Forks, start_server
from tests.postgres import PostgresServer, running_postgres

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may depend on what a hub answers
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # several processes share the test's cores

EMBEDDED = "smollm2-135m"

LEFT_OUT = pytest.StashKey[int]()
"""How many tests were left out for want of a CUDA device."""

TinyModels = Callable[[str], Path]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, and say so, what needs a CUDA device where there is none."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu or _has_cuda():
        return
    config.hook.pytest_deselected(items=on_gpu)
    items[:] = [item for item in items if item not in on_gpu]
    config.stash[LEFT_OUT] = len(on_gpu)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was left out beside pytest's own count."""
    left_out = terminalreporter.config.stash.get(LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(f"{left_out} tests on a GPU are left out: no CUDA device here.")


def _has_cuda() -> bool:
    import torch  # noqa: PLC0415 - only where a test asks for it

    return torch.cuda.is_available()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings of an empty home of this test's own, which child processes see too.

    Runs that the test leaves behind end with it.
    """
    home = tmp_path / "home"
    monkeypatch.setenv("EVERYTURN_HOME", str(home))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    yield read_settings()
    if (home / "everyturn.db").exists():
        with suppress(EveryTurnError):  # some tests break their database on purpose
            end_runs(read_settings())


def end_runs(settings: Settings) -> None:
    """Take waiting runs out of the queue, then kill those that have a process."""
    from db import commands, queries  # noqa: PLC0415 - only for tests that have a database
    from db.engine import open_database  # noqa: PLC0415
    from trainer.runs import process  # noqa: PLC0415

    database = open_database(settings)
    for run in queries.runs_with_status(database, RunStatus.QUEUED):
        commands.request_stop(database, run.id)
    for run in queries.runs(database):
        if run.status.has_process and run.pid is not None and run.process_started_at is not None:
            process.end(run.pid, run.process_started_at, force=True)
    database.close()


@pytest.fixture
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Argon2 with the least work it allows: a test may sign in and guess often."""
    from db import passwords  # noqa: PLC0415 - only for tests that sign in

    quick = passwords.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_HASHER", quick)
    monkeypatch.setattr(passwords, "_NOBODY", quick.hash("nobody"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of the tests' own; it fails where PostgreSQL is not installed."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of a database with our schema and nothing else, to be copied for each test."""
    from db.engine import open_database  # noqa: PLC0415 - only for tests that have a database

    name = postgres.new_database()
    home = tmp_path_factory.mktemp("postgres-home")
    open_database(Settings(home=home, database_url=postgres.url(name))).close()
    return name


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Return a function from a name in `tests.models.TINY_MODELS` to that model's folder."""
    from tests.models import write_tiny_model  # noqa: PLC0415 - torch, only for those who ask

    root = tmp_path_factory.mktemp("tiny-models")

    def folder_of(name: str) -> Path:
        folder = root / name
        return folder if folder.exists() else write_tiny_model(name, folder)

    return folder_of


@pytest.fixture(scope="session")
def tiny_llama(tiny_models: TinyModels) -> Path:
    """A tiny model whose template frames every message alike."""
    return tiny_models("llama")


@pytest.fixture(scope="session")
def tiny_qwen3(tiny_models: TinyModels) -> Path:
    """A tiny model whose template rewrites history as Qwen3's does."""
    return tiny_models("qwen3")


@pytest.fixture(scope="session")
def tiny_sliding(tiny_models: TinyModels) -> Path:
    """A tiny model with sliding-window attention, which cannot share prefixes."""
    return tiny_models("gemma3-sliding")


@pytest.fixture(scope="session")
def tiny_without_template(tiny_models: TinyModels) -> Path:
    """A tiny model whose tokenizer has no chat template."""
    return tiny_models("no-template")


@pytest.fixture(scope="session")
def smollm2(request: pytest.FixtureRequest) -> Path:
    """Folder of the embedded model, pulled into pytest's cache where it is not at hand."""
    from trainer.catalog import model_folder  # noqa: PLC0415 - only the slow tests need it
    from trainer.models import pull  # noqa: PLC0415 - torch, only for those who ask

    settings = read_settings()
    folder = model_folder(settings, EMBEDDED)
    if (folder / "config.json").exists():
        return folder
    home = request.config.cache.mkdir("everyturn-home")
    cached = Settings(home=home, database_url=f"sqlite:///{home / 'everyturn.db'}")
    folder = model_folder(cached, EMBEDDED)
    if not (folder / "config.json").exists():
        pull(cached, EMBEDDED)
    return folder


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """The process that this session forks runs from: it has loaded torch already."""
    door, server = start_server(tmp_path_factory.mktemp("forks"))
    yield door
    server.kill()
    server.wait()
