"""ShareGPT in its variants: from and value, role and content, bare lists, calls and observations."""

import json

import pytest

from tests.db.formats.reading import clean, found, lines, said

TURNS = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
KEYED = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
SAID = [("user", "q"), ("assistant", "a")]


@pytest.mark.parametrize(
    "document",
    [
        [{"conversations": TURNS}],
        {"conversations": TURNS},
        {"data": [{"conversations": TURNS}]},
        [{"conversations": KEYED}],
        {"conversations": json.dumps(TURNS)},
        [TURNS],
        TURNS,
        KEYED,
    ],
)
def test_each_variant_is_the_same_conversation(document: object) -> None:
    data = json.dumps(document).encode()
    assert found(data).format == "sharegpt"
    assert [said(conversation) for conversation in clean(data)] == [SAID]


def test_system_prompt_function_calls_and_observations() -> None:
    call = json.dumps({"name": "look", "arguments": {"n": 1}})
    with_key, with_turn = clean(
        lines(
            {"system": "s", "conversations": TURNS},
            {
                "conversations": [
                    {"from": "system", "value": "s"},
                    {"from": "human", "value": "q"},
                    {"from": "function_call", "value": call},
                    {"from": "observation", "value": "1"},
                    {"from": "gpt", "value": "a"},
                ]
            },
        )
    )
    assert with_key.system == with_turn.system == "s"
    assert said(with_turn) == [("user", "q"), ("assistant", ""), ("tool", "1"), ("assistant", "a")]
    assert with_turn.messages[1].tool_calls == (
        {"type": "function", "function": {"name": "look", "arguments": {"n": 1}}},
    )
