"""Short by default, for CI; `make soak` sets SOAK_SECONDS and so makes the same tests long."""

import os

import pytest

from db.settings import Settings, read_settings
from tests.postgres import PostgresServer


@pytest.fixture(scope="session")
def soak_s() -> float:
    """How long each test keeps going, in seconds."""
    return float(os.environ.get("SOAK_SECONDS", "5"))


@pytest.fixture(scope="session")
def more_s() -> float:
    """How much longer than one round the tests of forgery and of hostile text keep going."""
    return float(os.environ.get("SOAK_SECONDS", "0"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def settings(
    settings: Settings, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Settings of an empty home of this test's own, on each kind of database."""
    if request.param == "sqlite":
        return settings
    server: PostgresServer = request.getfixturevalue("postgres")
    template: str = request.getfixturevalue("postgres_template")
    monkeypatch.setenv("DATABASE_URL", server.url(server.new_database(template)))
    return read_settings()
