"""What must hold for every file: no crash, and nothing lost in the native format."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import Role
from db.errors import DataError
from db.formats import READABLE, parse, write
from db.formats.messages import ROLE_ALIASES
from db.records import Conversation, Message, Score

TELLING_KEYS = [
    "messages", "turns", "conversations", "data", "role", "content", "from", "value", "user",
    "assistant", "reward", "scores", "rater", "note", "at", "title", "system", "tags", "outcomes",
    "tool_calls", "function", "function_call", "name", "arguments", "token_ids", "logprobs", "id",
    "run_id", "type", "text", "created_at", "archived",
]  # fmt: skip

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
)


@pytest.mark.parametrize("format", ["auto", *READABLE])
@settings(max_examples=80, deadline=None)
@given(document=st.lists(rows, max_size=4) | rows, lines=st.booleans())
def test_no_json_makes_a_parser_crash(format: str, document: Any, lines: bool) -> None:
    text = (
        "\n".join(json.dumps(row) for row in document)
        if lines and isinstance(document, list)
        else json.dumps(document)
    )
    try:
        result = parse(text.encode(), format=format)
    except DataError as error:
        assert error.what
        return
    assert len(result.rows) == len(result.conversations)
    write(result.conversations, "native").encode()  # what was read can be stored


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
def test_no_bytes_make_a_parser_crash(data: bytes) -> None:
    with pytest.raises(DataError):
        parse(data)


storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
times = st.none() | st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1))  # noqa: DTZ001
scores = st.lists(
    st.builds(
        Score,
        rater=storable.filter(lambda name: bool(name.strip())),
        value=st.floats(-1, 1),
        note=storable,
        at=times,
    ),
    max_size=3,
    unique_by=lambda score: score.rater,
).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | storable
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(storable, inner, max_size=2),
    max_leaves=5,
)  # fmt: skip
tool_calls = st.lists(
    st.fixed_dictionaries(
        {
            "function": st.fixed_dictionaries(
                {"name": storable, "arguments": storable | st.dictionaries(storable, json_values)}
            )
        },
        optional={"id": storable, "type": st.just("function"), "extra": json_values},
    ),
    max_size=2,
).map(tuple)
ids = st.none() | st.integers(0, 2**63 - 1)


@st.composite
def sampled(draw: st.DrawFn) -> dict[str, Any]:
    """Token ids and log-probabilities: both, ids alone, or neither."""
    tokens = draw(st.none() | st.lists(st.integers(0, 200_000), max_size=4))
    if tokens is None:
        return {}
    finite = st.floats(allow_nan=False, allow_infinity=False)
    logprobs = draw(st.none() | st.lists(finite, min_size=len(tokens), max_size=len(tokens)))
    return {
        "token_ids": tuple(tokens),
        "logprobs": None if logprobs is None else tuple(logprobs),
        "model": draw(st.none() | storable.filter(bool)),
        "run_id": draw(ids),
    }


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(Role))
    extra: dict[str, Any] = {}
    if role is Role.ASSISTANT:
        extra = {"scores": draw(scores), "tool_calls": draw(tool_calls), **draw(sampled())}
    if role is Role.TOOL:
        extra = {"tool_call_id": draw(st.none() | storable.filter(bool))}
    return Message(role=role, content=draw(storable), id=draw(ids), **extra)


conversations = st.builds(
    Conversation,
    messages=st.lists(messages(), min_size=1, max_size=5).map(tuple),
    id=ids,
    title=storable,
    system=storable,
    source=storable,
    group=storable,
    tags=st.lists(storable, max_size=3).map(tuple),
    outcomes=scores,
    created_at=times,
    updated_at=times,
    archived=st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(original=st.lists(conversations, min_size=1, max_size=3))
def test_the_native_format_loses_nothing(original: list[Conversation]) -> None:
    result = parse(write(original, "native").encode())
    assert result.format == "native"
    assert result.skipped == ()
    assert list(result.conversations) == original


def test_writing_replaces_what_utf8_cannot_hold() -> None:
    bad = Conversation(messages=(Message(role=Role.USER, content="a\ud800\x00b"),))
    (read,) = parse(write([bad], "native").encode()).conversations
    assert read.messages[0].content == "a\ufffd\ufffdb"


def test_a_number_that_is_not_finite_is_not_written() -> None:
    call = {"function": {"name": "f", "arguments": {"x": float("nan")}}}
    bad = Conversation(messages=(Message(role=Role.ASSISTANT, content="", tool_calls=(call,)),))
    with pytest.raises(DataError, match="cannot be written"):
        write([bad], "native")
