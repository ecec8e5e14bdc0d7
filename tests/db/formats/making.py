"""Conversations of every shape that can be stored, for hypothesis."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from db.enums import Role
from db.records import Conversation, Message, Score

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
        "sampling": draw(st.none() | st.dictionaries(storable, json_values, max_size=2)),
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


tools = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("function"), "function": st.dictionaries(storable, json_values)}
    ),
    max_size=2,
).map(tuple)

conversations = st.builds(
    Conversation,
    messages=st.lists(messages(), min_size=1, max_size=5).map(tuple),
    id=ids,
    title=storable,
    system=storable,
    tools=tools,
    source=storable,
    group=storable,
    tags=st.lists(storable, max_size=3).map(tuple),
    outcomes=scores,
    created_at=times,
    updated_at=times,
    archived=st.booleans(),
)
