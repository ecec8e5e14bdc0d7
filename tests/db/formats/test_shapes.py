"""What all formats have in common: roles, the order of turns, direct scores, what has no place."""

import json

import pytest

from db.errors import DataError
from db.formats import parse, write
from db.records import Conversation


def parsed(*rows: object, format: str = "auto") -> list[Conversation]:
    result = parse("\n".join(json.dumps(row) for row in rows).encode(), format=format)
    assert result.skipped == ()
    return list(result.conversations)


SCORED = [
    {"role": "user", "content": "a", "score": None},
    {"role": "assistant", "content": "b", "score": 0},
    {"role": "assistant", "content": "c", "score": -0.5},
    {"role": "assistant", "content": "d", "score": None},
    {"role": "assistant", "content": "e"},
]


@pytest.mark.parametrize("format", ["auto", "native", "openai"])
def test_a_reply_may_carry_its_score_directly(format: str) -> None:
    assert values(parsed({"messages": SCORED}, format=format)[0]) == [[0.0], [-0.5], [], []]


def test_sharegpt_and_a_bare_list_of_messages_may_carry_scores_too() -> None:
    spoken = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b", "score": 0.25}]
    assert values(parsed({"conversations": spoken})[0]) == [[0.25]]
    result = parse(json.dumps(SCORED).encode())
    assert values(result.conversations[0]) == [[0.0], [-0.5], [], []]
    assert result.warnings == ()


def values(conversation: Conversation) -> list[list[float]]:
    return [[s.value for s in m.scores] for m in conversation.assistant_messages]


def test_any_order_of_turns_is_accepted() -> None:
    roles = ["assistant", "user", "user", "assistant", "assistant", "user"]
    (conversation,) = parsed({"messages": [{"role": r, "content": "x"} for r in roles]})
    assert [m.role.value for m in conversation.messages] == roles


@pytest.mark.parametrize(
    ("alias", "role"),
    [("human", "user"), ("Prompter", "user"), ("GPT", "assistant"), ("developer", "system"),
     ("observation", "tool"), ("function", "tool"), (" User ", "user"), ("ASSISTANT", "assistant")],
)  # fmt: skip
def test_roles_go_by_many_names(alias: str, role: str) -> None:
    (conversation,) = parsed(
        {"messages": [{"role": "user", "content": "x"}, {"role": alias, "content": "y"}]}
    )
    assert conversation.messages[1].role.value == role


def test_what_has_no_place_is_reported_once() -> None:
    row = {"messages": [{"role": "assistant", "content": "x", "name": "bob"}], "functions": []}
    result = parse("\n".join([json.dumps(row)] * 8).encode())
    assert result.warnings == (
        "rows 1, 2, 3, 4, 5 and 3 more: the field 'functions' has no place here and was left out",
        "rows 1, 2, 3, 4, 5 and 3 more: the field 'messages[].name' has no place here and was left out",
    )


def test_unstorable_characters_are_replaced_and_reported() -> None:
    data = b'{"messages":[{"role":"assistant","content":"a\\u0000b\\ud800c"}]}'
    result = parse(data)
    assert result.conversations[0].messages[0].content == "a\ufffdb\ufffdc"
    assert result.warnings == ("row 1: characters that cannot be stored were replaced by U+FFFD",)


@pytest.mark.parametrize("name", ["recipes", ""])
def test_a_format_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="native, recipe, openai, sharegpt"):
        parse(b"[1]", format=name)
    with pytest.raises(DataError, match="native, openai"):
        write([], name)
