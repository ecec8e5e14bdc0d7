"""Every format of the list: its example, its own tests, and the tools that may stand beside it."""

import json
from pathlib import Path

import pytest

from db.formats import FORMATS
from tests.db.formats.reading import COLOUR, clean, found, lines


@pytest.mark.parametrize("name", FORMATS)
def test_each_example_is_recognised_and_read_without_an_issue(name: str) -> None:
    data = FORMATS[name].example.encode()
    assert found(data).format == name
    assert clean(data)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_has_tests_of_its_own(name: str) -> None:
    module = "tables" if name == "csv" else name.replace("-", "_")
    assert (Path(__file__).parent / f"test_{module}.py").exists()


TOOLS = ({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},)


@pytest.mark.parametrize("tools", [list(TOOLS), json.dumps(TOOLS)])
@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "assistant", "content": "Blue."}]},
        {"title": "t", "messages": [{"role": "assistant", "content": "Blue."}]},
        {"conversations": [{"from": "gpt", "value": "Blue."}]},
        {"prompt": COLOUR, "chosen": "Blue.", "rejected": "No."},
        {"prompt": COLOUR, "completion": "Blue.", "label": True},
        {"prompt": COLOUR, "completion": "Blue.", "score": 1},
    ],
)
def test_tools_beside_what_was_said_are_kept(row: dict[str, object], tools: object) -> None:
    found_tools = [conversation.tools for conversation in clean(lines({**row, "tools": tools}))]
    assert found_tools in ([TOOLS], [TOOLS] * 2)
    bare, *_ = clean(lines({**row, "tools": "" if isinstance(tools, str) else None}))
    assert bare.tools == ()


def test_other_tools_make_another_prompt() -> None:
    row = {"prompt": COLOUR, "chosen": "Blue.", "rejected": "No."}
    groups = [c.group for c in clean(lines(row, {**row, "tools": list(TOOLS)}))]
    assert groups[0] == groups[1] != groups[2] == groups[3]
