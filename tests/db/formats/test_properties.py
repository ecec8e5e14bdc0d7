"""What must hold for every file: no crash, and nothing lost in the native format."""

import csv
import gzip
import io
import json
import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import Role
from db.errors import DataError
from db.formats import FORMATS, READABLE, WRITABLE, Parsed, Source, parse, read, write, write_to
from db.formats.messages import ROLE_ALIASES
from db.formats.tables import COLUMNS
from db.records import Conversation, Message
from tests.db.formats.making import conversations

TELLING_KEYS = [
    "messages", "turns", "conversations", "data", "role", "content", "from", "value", "user",
    "assistant", "reward", "scores", "rater", "note", "at", "title", "system", "tags", "outcomes",
    "tool_calls", "function", "function_call", "name", "arguments", "token_ids", "logprobs", "id",
    "run_id", "type", "text", "created_at", "archived", "chosen", "rejected", "prompt", "completion",
    "label", "instruction", "output", "history", "response", "helpfulness", "completions",
    "overall_score", "annotations", "Rating", "message_id", "parent_id", "rank", "labels", "replies",
    "deleted", "mapping", "message", "parent", "author", "parts", "current_node", "metadata",
    "result", "completed_by", "rating", "choices", "fields", "responses", "values", "user_id",
    "rating.responses", "conversation_id", "turn", "answer", "score_chosen", "score_rejected",
]  # fmt: skip

EXAMPLE_ROWS = [
    item.raw
    for format in FORMATS.values()
    for item in read(Source.of_bytes(format.example.encode()))
    if isinstance(item, Parsed) and isinstance(item.raw, dict)
]

any_text = st.text(st.characters(exclude_categories=[]), max_size=8)  # surrogates and NUL too
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.sampled_from([*ROLE_ALIASES, "text", "2026-01-31", 10**400])
)
any_json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(TELLING_KEYS) | any_text, inner, max_size=5)
    ),
    max_leaves=25,
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=5)
    | st.datetimes() | st.binary(max_size=3) | st.decimals(places=2, allow_nan=False, allow_infinity=False, max_value=99),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(TELLING_KEYS), inner, min_size=1, max_size=3),
    max_leaves=6,
)  # fmt: skip
messages_like = st.lists(
    st.fixed_dictionaries({"role": scalars | st.just("assistant"), "content": any_json},
                          optional=dict.fromkeys(TELLING_KEYS[11:], any_json)), max_size=3
)  # fmt: skip
rows = (
    any_json
    | st.fixed_dictionaries(
        {"messages": messages_like}, optional=dict.fromkeys(TELLING_KEYS[11:], any_json)
    )
    | st.fixed_dictionaries({"turns": st.lists(any_json, max_size=3)})
    | st.fixed_dictionaries({"conversations": messages_like | any_json})
    | st.sampled_from(EXAMPLE_ROWS).flatmap(
        lambda row: st.fixed_dictionaries(
            {key: st.just(value) | any_json for key, value in row.items()}
        )
    )
)


EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "100"))
"""More for a longer search: FUZZ_EXAMPLES=20000 pytest tests/db/formats/test_properties.py"""


def survives(data: bytes, format: str) -> None:
    """Read a file; whatever it holds, there are conversations or an error in words."""
    try:
        result = parse(data, format=format)
    except DataError as error:
        assert error.what
        return
    assert len(result.rows) == len(result.conversations)
    for writable in WRITABLE:  # what was read can be written
        write_to(result.conversations, writable, io.BytesIO())


formats = st.sampled_from(["auto", *READABLE])


@settings(max_examples=EXAMPLES, deadline=None)
@given(document=st.lists(rows, max_size=4) | rows, lines=st.booleans(), format=formats)
def test_no_json_makes_a_parser_crash(document: Any, lines: bool, format: str) -> None:
    text = (
        "\n".join(json.dumps(row) for row in document)
        if lines and isinstance(document, list)
        else json.dumps(document)
    )
    survives(text.encode(), format)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    data=st.sampled_from([format.example.encode() for format in FORMATS.values()]),
    cuts=st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 12), st.binary(max_size=6)), max_size=4
    ),
    packed=st.booleans(),
    format=formats,
)
def test_no_damage_to_an_example_makes_a_parser_crash(
    data: bytes, cuts: list[tuple[int, int, bytes]], packed: bool, format: str
) -> None:
    for place, length, instead in cuts:
        data = data[:place] + instead + data[place + length :]
    if packed:
        data = gzip.compress(data)[: len(data)]
    survives(data, format)


cells = st.text(max_size=6) | st.sampled_from(
    ["1", "2", "user", "assistant", "0.5", "[]", '{"a": 1}']
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    names=st.lists(st.sampled_from([*COLUMNS, "label", "chosen", "messages", "response"]),
                   min_size=2, max_size=5, unique=True),
    records=st.lists(st.lists(cells, max_size=6), max_size=5),
    format=formats,
)  # fmt: skip
def test_no_table_makes_a_parser_crash(
    names: list[str], records: list[list[str]], format: str
) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([names, *records])
    survives(text.getvalue().encode("utf-8", "replace"), format)


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(records=st.lists(st.dictionaries(st.sampled_from(TELLING_KEYS), plain, max_size=4), min_size=1, max_size=3),
       cut=st.integers(0, 40), format=formats)  # fmt: skip
def test_no_parquet_file_makes_a_parser_crash(records: list[Any], cut: int, format: str) -> None:
    stream = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(records), stream)
    except (pa.ArrowException, ValueError, OverflowError):
        return  # Arrow has no type for it
    data = stream.getvalue()
    survives(data[: len(data) - max(cut - 20, 0)], format)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
def test_no_bytes_make_a_parser_crash(data: bytes) -> None:
    with pytest.raises(DataError):
        parse(data)


@settings(max_examples=100, deadline=None)
@given(original=st.lists(conversations, min_size=1, max_size=3))
def test_the_native_format_loses_nothing(original: list[Conversation]) -> None:
    result = parse(write(original, "native").encode())
    assert result.format == "native"
    assert result.skipped == ()
    assert list(result.conversations) == original


def test_writing_replaces_what_utf8_cannot_hold() -> None:
    bad = Conversation(messages=(Message(role=Role.USER, content="a\ud800\x00b"),))
    (back,) = parse(write([bad], "native").encode()).conversations
    assert back.messages[0].content == "a\ufffd\ufffdb"


def test_a_number_that_is_not_finite_is_not_written() -> None:
    call = {"function": {"name": "f", "arguments": {"x": float("nan")}}}
    bad = Conversation(messages=(Message(role=Role.ASSISTANT, content="", tool_calls=(call,)),))
    with pytest.raises(DataError, match="cannot be written"):
        write([bad], "native")
