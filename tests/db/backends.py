"""The databases that EveryTurn runs on: `pytestmark = ON_EVERY_DATABASE` runs a module on each."""

import pytest

ON_EVERY_DATABASE = pytest.mark.parametrize(
    "backend", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
