"""Fixtures of the database tests."""

from collections.abc import Iterator

import pytest

from db import queries
from db.engine import Database, open_database
from db.settings import Settings


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
