"""Fixtures of the database tests."""

from collections.abc import Iterator

import pytest

from db import queries
from db.engine import Database, open_database
from db.settings import Settings, read_settings
from tests.postgres import PostgresServer


@pytest.fixture
def backend() -> str:
    """The kind of database; modules that run on each are marked `ON_EVERY_DATABASE`."""
    return "sqlite"


@pytest.fixture
def settings(
    settings: Settings,
    backend: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    """Settings of an empty home of this test's own, whose database is of this kind."""
    if backend == "sqlite":
        return settings
    server: PostgresServer = request.getfixturevalue("postgres")
    template: str = request.getfixturevalue("postgres_template")
    monkeypatch.setenv("DATABASE_URL", server.url(server.new_database(template)))
    return read_settings()


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """An empty database in a home of its own."""
    opened = open_database(settings)
    yield opened
    opened.close()


@pytest.fixture
def user_id(database: Database) -> int:
    """The local user's id."""
    return queries.local_user(database).id
