"""Exports load with `datasets`, which takes the types of all columns from a file's first 10 MB."""

import json
from pathlib import Path
from typing import Any

import pytest

from db.enums import Role
from db.formats import WRITERS, early_types, write_to
from db.formats.early_types import typed_early
from db.records import Conversation, Message, Score

TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"no": 7}'}}
OBJECT_CALL = {"function": {"name": "find", "arguments": {"no": 7}}}


def reply(text: str, value: float, **facts: Any) -> Message:
    scores = (Score(rater="ann", value=value),)
    return Message(role=Role.ASSISTANT, content=text, scores=scores, **facts)


def talks(count: int, size: int) -> list[Conversation]:
    """Return pairs of branches with long texts; only the last three have tools, and call them."""
    ask = [Message(role=Role.USER, content=f"{i}?" + "x" * size) for i in range(count)]
    plain = [
        Conversation(system="Be brief.", messages=(question, reply(text, value)))
        for question in ask
        for text, value in (("Yes.", 1.0), ("No.", 0.0))
    ]
    answer = Message(role=Role.TOOL, content="here", tool_call_id="c1")
    called = Message(role=Role.ASSISTANT, content="", tool_calls=(CALL,))
    late = [
        Conversation(messages=(ask[0], called, answer, reply("There.", 0.9)), tools=(TOOL,)),
        Conversation(messages=(ask[0], reply("", 0.5, tool_calls=(CALL,))), tools=(TOOL,)),
        Conversation(messages=(ask[0], reply("", 0.1, tool_calls=(OBJECT_CALL,))), tools=(TOOL,)),
    ]
    return [*plain, *late]


FORMATS = ("openai", "sharegpt", "kto", "preference", "completions")


def loaded(format: str, conversations: list[Conversation], folder: Path, **options: Any) -> Any:
    from datasets import load_dataset  # noqa: PLC0415 - it takes seconds, and most tests need none

    path = folder / f"{format}.jsonl"
    with path.open("wb") as stream:
        write_to(conversations, format, stream)
    cache = str(folder / "cache")
    return load_dataset("json", data_files=str(path), split="train", cache_dir=cache, **options)


@pytest.mark.parametrize("format", FORMATS)
def test_tools_that_come_late_in_a_large_file_are_loaded(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_types, "EARLY_BYTES", 400_000)
    data = loaded(format, talks(60, 20_000), tmp_path, chunksize=1_000_000)
    assert data.num_rows >= 60
    tools = [row["tools"] for row in data if row["tools"] is not None]
    assert len(tools) == (1 if format == "preference" else 3)  # one pair, or three conversations
    assert "find" in json.dumps(data[:])


def test_a_file_of_more_than_ten_megabytes_is_loaded_as_it_is(tmp_path: Path) -> None:
    data = loaded("kto", talks(60, 200_000), tmp_path)
    assert (tmp_path / "kto.jsonl").stat().st_size > 20 * 2**20
    assert sum(tools is not None for tools in data["tools"]) == 3
    (call,) = [row for row in data if row["prompt"][-1]["role"] == "tool"]
    assert call["prompt"][1]["tool_calls"][0]["function"]["name"] == "find"


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in typed_early(rows)]


def test_rows_keep_their_order_but_for_late_ones_of_a_new_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(early_types, "EARLY_BYTES", 100)
    rows: list[dict[str, Any]] = [{"a": "x" * 40, "n": n} for n in range(6)]
    late: list[dict[str, Any]] = [{"a": None, "n": 7}, {"a": "y", "b": [{}]}, {"a": None, "n": 8}]
    assert ordered([*rows, *late]) == [rows[0], late[0], late[1], *rows[1:], late[2]]
    assert ordered(rows) == rows
    assert ordered(late) == late  # so short a file needs no other order


def test_what_is_moved_forward_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_types, "EARLY_BYTES", 100)
    keys = ["a", "a", "b", "a", "c", "d"]
    rows: list[dict[str, Any]] = [{key: "x" * 60, "n": n} for n, key in enumerate(keys)]
    assert [row["n"] for row in ordered(rows)] == [0, 2, 1, 3, 4, 5]


def test_the_form_that_loses_nothing_keeps_its_order_whatever_the_shapes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(early_types, "EARLY_BYTES", 100)
    given = talks(3, 100)
    path = tmp_path / "all.jsonl"
    with path.open("wb") as stream:
        write_to(given, "native", stream)
    texts = [json.loads(line)["messages"][-1]["content"] for line in path.open()]
    assert texts == [c.messages[-1].content for c in given]
    assert set(FORMATS) == {n for n, w in WRITERS.items() if w.suffix == ".jsonl"} - {"native"}
