"""Processes that have loaded torch already, for tests of what processes do."""

from collections.abc import Iterator

import pytest

from tests.forking import Forks, start_server


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """The serving process of this session."""
    door, server = start_server(tmp_path_factory.mktemp("forks"))
    yield door
    server.kill()
    server.wait()
