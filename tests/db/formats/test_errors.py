"""Bad files are refused, and bad rows skipped, in words that name the place."""

import json

import pytest

from db.errors import DataError
from db.formats import parse

GOOD = {"messages": [{"role": "assistant", "content": "x"}]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "file: the file is empty"),
        (b"\xef\xbb\xbf \n", "file: the file is empty"),
        (b"[]", "the list is empty"),
        (b'{"data": []}', "the list is empty"),
        (b"name,age\nann,7\n", "its first row is an object with 'name', 'age'"),
        (b"\n\n<html>", "line 1: this is neither JSON nor a CSV file: it begins with '<html>'"),
        (b"null", "this is neither JSON nor a CSV file"),
        (b"\x1f\x8b\x08\x00", "the archive is cut off before its first row"),
        (b"PK\x03\x04rest", "zip"),
        (b"PAR1", "Parquet"),
        (b"\x00\xff\x81\x8d\x00\x00", "not a text file"),
        (b'[{"turns": [}]', "line 1, column 13: the JSON is malformed"),
        (b'[\n{"turns": []},\n{"turns" []}]', "line 3, column 10: the JSON is malformed"),
        (b'{"messages": [}\n', "line 1, column 15: the JSON is malformed"),
        (b'{"messages": [}\n{"messages": [}', "line 1, column 15: the JSON is malformed"),
        (b'{"a": [1, 2]', "line 1, column 1: the file ends in the middle of it"),
        (b'{"a": [1, 2]\n', "line 1, column 1: the file ends in the middle of it"),
        (b"[1, 2, 3]", "row 1: this is none of the known formats: its first row is a number"),
        (b'[{"prompt": "x"}]', "its first row is an object with 'prompt'"),
        (b"[{}]", "its first row is an empty object"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(DataError) as caught:
        parse(data)
    assert words in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in caught.value.what


def row_with(**message: object) -> str:
    return json.dumps({"messages": [{"role": "user", "content": "q"}, message]})


def scored_row(value: str) -> str:
    return (
        '{"title": "t", "messages": [{"role": "assistant", "content": "a", '
        f'"scores": [{{"rater": "r", "value": {value}}}]}}]}}'
    )


BAD_ROWS = [
    ("openai", row_with(role="alien", content="x"), "messages[1].role", "'alien' is unknown"),
    ("openai", row_with(role=7, content="x"), "messages[1].role", "a number stands where text"),
    ("openai", row_with(content="x"), "messages[1].role", "missing"),
    ("openai", row_with(role="assistant"), "messages[1].content", "missing"),
    ("openai", row_with(role="assistant", content=None), "messages[1].content", "null"),
    ("openai", row_with(role="assistant", content=[{"type": "image_url"}]), "messages[1].content[0].type", "no text"),
    ("openai", row_with(role="user", content="", tool_calls=[{"function": {"name": "f"}}]), "messages[1].tool_calls", "makes tool calls"),
    ("openai", row_with(role="assistant", tool_calls=[{}]), "messages[1].tool_calls[0].function", "missing"),
    ("openai", row_with(role="assistant", content="x", score="one"), "messages[1].score", "'one' is not a number"),
    ("openai", row_with(role="assistant", content="x", score=[0.5]), "messages[1].score", "is not a number"),
    ("openai", row_with(role="user", content="x", score=0.5), "messages[1].score", "a user message carries a score"),
    ("native", row_with(role="assistant", content="x", score=1.5), "messages[1].score", "1.5 is outside"),
    ("native", row_with(role="assistant", content="x", score=float("nan")), "messages[1].score", "not finite"),
    ("native", row_with(role="assistant", content="x", score=1, scores=[{"value": 0}]), "messages[1].score", "scores it twice"),
    ("sharegpt", '{"conversations": [{"from": "gpt", "value": "a", "score": -2}]}', "conversations[0].score", "outside"),
    ("openai", json.dumps({**GOOD, "tools": {}}), "tools", "an object stands where a list"),
    ("openai", json.dumps({**GOOD, "tools": [{}, "look"]}), "tools[1]", "text stands where an object"),
    ("openai", '{"messages": []}', "messages", "there is no message"),
    ("openai", '{"messages": [{"role": "system", "content": "s"}]}', "messages", "there is no message"),
    ("openai", '{"messages": {"role": "user"}}', "messages", "an object stands where a list"),
    ("openai", '{"messages": [[]]}', "messages[0]", "a list stands where an object"),
    ("openai", '{"messages": [], "x": {"y": [1, NaN]}}', "x.y[1]", "not finite"),
    ("native", scored_row("NaN"), "messages[0].scores[0].value", "not finite"),
    ("native", scored_row("-Infinity"), "messages[0].scores[0].value", "not finite"),
    ("native", scored_row("1e999"), "messages[0].scores[0].value", "not finite"),
    ("native", scored_row("9" * 5000), "messages[0].scores[0].value", "not finite"),
    ("native", scored_row("1.01"), "messages[0].scores[0].value", "1.01 is outside"),
    ("native", scored_row("9" * 200), "messages[0].scores[0].value", "outside"),
    ("native", scored_row("true"), "messages[0].scores[0].value", "True is not a number"),
    ("native", scored_row('"0.5"'), "messages[0].scores[0].value", "'0.5' is not a number"),
    ("native", scored_row("null"), "messages[0].scores[0].value", "None is not a number"),
    ("native", '{"title": "t", "messages": [{"role": "user", "content": "a", "scores": [{"value": 1}]}]}', "messages[0].scores", "a user message carries a score"),
    ("native", '{"title": "t", "messages": [{"role": "assistant", "content": "a", "scores": [{"value": 1}, {"value": 0}]}]}', "messages[0].scores[1].rater", "twice"),
    ("native", '{"title": 3, "messages": [{"role": "assistant", "content": "a"}]}', "title", "a number stands where text"),
    ("native", '{"tags": [1], "messages": [{"role": "assistant", "content": "a"}]}', "tags[0]", "a number stands where text"),
    ("native", '{"created_at": "soon", "messages": [{"role": "assistant", "content": "a"}]}', "created_at", "'soon' is not a time"),
    ("native", '{"archived": 1, "messages": [{"role": "assistant", "content": "a"}]}', "archived", "true or false"),
    ("native", '{"title": "", "messages": [{"role": "assistant", "content": "a", "token_ids": [1], "logprobs": [-1, -2]}]}', "messages[0].logprobs", "2 log-probabilities for 1 tokens"),
    ("native", '{"title": "", "messages": [{"role": "assistant", "content": "a", "token_ids": [-1]}]}', "messages[0].token_ids[0]", "whole number"),
    ("recipe", '{"turns": [{"assistant": "a"}]}', "turns[0].user", "missing"),
    ("recipe", '{"turns": [{"user": "q"}]}', "turns[0].assistant", "missing"),
    ("recipe", '{"turns": [{"user": "q", "assistant": "a", "reward": 2}]}', "turns[0].reward", "2 is outside"),
    ("recipe", '{"turns": [{"user": "q", "assistant": "a", "reward": Infinity}]}', "turns[0].reward", "not finite"),
    ("recipe", '{"turns": []}', "turns", "there is no message"),
    ("sharegpt", '{"conversations": [{"from": "robot9", "value": "a"}]}', "conversations[0].from", "'robot9' is unknown"),
    ("sharegpt", '{"conversations": [{"from": "gpt"}]}', "conversations[0].value", "missing"),
    ("sharegpt", '{"conversations": 5}', "conversations", "a number stands where a list"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "row", "field", "reason"), BAD_ROWS)
def test_a_bad_row_is_skipped_with_field_reason_and_remedy(
    format: str, row: str, field: str, reason: str
) -> None:
    good = {"recipe": '{"turns": [{"user": "q", "assistant": "a"}]}',
            "sharegpt": '{"conversations": [{"from": "gpt", "value": "a"}]}',
            }.get(format, json.dumps(GOOD))  # fmt: skip
    result = parse(f"{good}\n{row}\n{good}\n".encode(), format=format)
    (issue,) = result.skipped
    assert (issue.row, issue.field) == (2, field)
    assert reason in issue.reason
    assert issue.remedy
    assert result.rows == (1, 3)
    assert len(result.conversations) == 2


def test_deep_data_inside_a_row_is_skipped() -> None:
    deep = "[" * 200 + "]" * 200
    result = parse(f'{json.dumps(GOOD)}\n{{"messages": {deep}}}\n'.encode())
    (issue,) = result.skipped
    assert issue.row == 2 and "64 levels" in issue.reason


def test_a_conversation_without_a_reply_is_kept_with_a_warning() -> None:
    row = json.dumps({"messages": [{"role": "user", "content": "x"}]})
    result = parse(f"{json.dumps(GOOD)}\n{row}\n{row}\n".encode())
    assert len(result.conversations) == 3
    assert result.warnings == (
        "rows 2, 3: there is no assistant turn, so there is nothing to score",
    )


@pytest.mark.parametrize(
    ("encoding", "warning"),
    [("utf-8", None), ("utf-8-sig", None), ("cp1252", "Windows-1252"), ("utf-16", "UTF-16")],
)
def test_encodings_are_told_apart_and_reported(encoding: str, warning: str | None) -> None:
    row = json.dumps(
        {"messages": [{"role": "assistant", "content": "caf\u00e9 \u20ac"}]}, ensure_ascii=False
    )
    result = parse(f"{row}\r\n{row}\r\n".encode(encoding))
    assert [c.messages[0].content for c in result.conversations] == ["caf\u00e9 \u20ac"] * 2
    assert [warning in line for line in result.warnings if warning] == [True] * bool(warning)
    assert len(result.warnings) == bool(warning)
