"""What people wrote is no formula, also where the browser saves a table as CSV."""

from pathlib import Path

import pytest

import app as package
from app.components.cells import text_cells


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "\uff1d1"])
def test_a_cell_that_could_be_a_formula_begins_with_an_invisible_sign(text: str) -> None:
    (row,) = text_cells([{"Title": text, "Tags": [text, "plain"], "Mean": -0.5, "None": None}])
    assert row == {
        "Title": f"\u2060{text}",
        "Tags": [f"\u2060{text}", "plain"],
        "Mean": -0.5,
        "None": None,
    }


def test_other_text_stays_as_it_is() -> None:
    row = {"Title": "1 - 1 = 0", "Scored": "0 / 2", "Source": ""}
    assert text_cells([row]) == [row]


def test_every_table_of_the_app_is_made_of_such_cells() -> None:
    sources = {path: path.read_text("utf-8") for path in Path(package.__path__[0]).rglob("*.py")}
    with_tables = [path for path, source in sources.items() if ".dataframe(" in source]
    assert len(with_tables) > 5
    assert [path for path in with_tables if "text_cell" not in sources[path]] == []
