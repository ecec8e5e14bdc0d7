"""Cells of tables: what people wrote stays text, also in the CSV file that a browser makes of them.

Every table can be saved as CSV with a button that the browser draws. A spreadsheet would take a
title like "=1+1" for a formula; an invisible word joiner before it leaves it a title.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from db.formats import guard

_WORD_JOINER = "\u2060"


def text_cells(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return rows for a table in which no text can be taken for a formula."""
    return [{name: _cell(value) for name, value in row.items()} for row in rows]


def text_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return text if guard(text) == text else f"{_WORD_JOINER}{text}"


def _cell(value: object) -> object:
    if isinstance(value, str):
        return text_cell(value)
    if isinstance(value, list):
        return [_cell(entry) for entry in cast("list[object]", value)]
    return value
