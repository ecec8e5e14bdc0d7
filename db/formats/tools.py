"""The functions that a conversation's assistant may call, as a field of a row."""

import json
from typing import Any

from db.formats.fields import JsonObject, as_list, as_object
from db.text import clean_json


def parse_tools(data: JsonObject) -> tuple[JsonObject, ...]:
    """Read a row's `tools`: a list of objects, or JSON text that holds one; none is empty.

    Raises:
        RowError: naming the field.
    """
    value = data.get("tools")
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    tools = as_list(value, "tools")
    return tuple(clean_json(as_object(tool, f"tools[{index}]")) for index, tool in enumerate(tools))


def tools_field(tools: tuple[JsonObject, ...]) -> dict[str, Any]:
    """Return the field of a row that holds the tools; without any there is none."""
    return {"tools": list(tools)} if tools else {}


def tools_text_field(tools: tuple[JsonObject, ...]) -> dict[str, str]:
    """Return the same as JSON text: readers that want one type a column, like TRL, take it so."""
    return {"tools": json.dumps(list(tools), ensure_ascii=False, allow_nan=False)} if tools else {}
