"""Each format's shapes become the same kind of conversation."""

import json
from typing import Any

import pytest

from db.enums import Role
from db.errors import DataError
from db.formats import parse, write
from db.records import Conversation, Message, Score


def parsed(*rows: object, format: str = "auto") -> list[Conversation]:
    result = parse("\n".join(json.dumps(row) for row in rows).encode(), format=format)
    assert result.skipped == ()
    return list(result.conversations)


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role.value, message.content) for message in conversation.messages]


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}


def test_recipe_reads_rewards_and_tells_zero_from_missing() -> None:
    document = [
        {
            "turns": [
                {"user": "a", "assistant": "b", "reward": 0},
                {"user": "c", "assistant": "d", "reward": None},
                {"user": "e", "assistant": "f"},
                {"user": "g", "assistant": "h", "reward": -1},
            ]
        }
    ]
    result = parse(json.dumps(document, indent=2).encode())
    assert result.format == "recipe"
    (conversation,) = result.conversations
    assert said(conversation)[:4] == [
        ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")
    ]  # fmt: skip
    assert [m.scores for m in conversation.assistant_messages] == [
        (Score(rater="imported", value=0.0),),
        (),
        (),
        (Score(rater="imported", value=-1.0),),
    ]


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


def test_a_direct_score_stands_beside_those_of_other_raters() -> None:
    row = {"role": "assistant", "content": "b", "score": 1, "scores": [{"rater": "r", "value": 0}]}
    (conversation,) = parsed({"messages": [row]})
    assert conversation.messages[0].scores == (
        Score(rater="imported", value=1.0),
        Score(rater="r", value=0.0),
    )
    assert parsed(json.loads(write([conversation], "native"))) == [conversation]


def values(conversation: Conversation) -> list[list[float]]:
    return [[s.value for s in m.scores] for m in conversation.assistant_messages]


def test_openai_joins_parts_lifts_the_system_prompt_and_keeps_tool_calls() -> None:
    (conversation,) = parsed(
        {
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "1"},
                {"role": "assistant", "content": "done"},
            ]
        }
    )  # fmt: skip
    assert conversation.system == "be brief"
    assert said(conversation) == [
        ("user", "ab"), ("assistant", ""), ("tool", "1"), ("assistant", "done")
    ]  # fmt: skip
    assert conversation.messages[1].tool_calls == (CALL,)
    assert conversation.messages[2].tool_call_id == "c1"


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


def test_sharegpt_in_its_variants() -> None:
    turns = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
    keyed = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    expected = [("user", "q"), ("assistant", "a")]
    documents: list[Any] = [
        [{"conversations": turns}],
        {"conversations": turns},
        {"data": [{"conversations": turns}]},
        [{"conversations": keyed}],
        [turns],
        turns,
        keyed,
    ]
    for document in documents:
        result = parse(json.dumps(document).encode())
        assert (result.format, result.skipped) == ("sharegpt", ())
        assert [said(c) for c in result.conversations] == [expected], document


def test_sharegpt_system_prompt_function_calls_and_observations() -> None:
    call = json.dumps({"name": "look", "arguments": {"n": 1}})
    with_key, with_turn = parsed(
        {"system": "s", "conversations": [{"from": "human", "value": "q"}]},
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
    assert with_key.system == with_turn.system == "s"
    assert said(with_turn) == [("user", "q"), ("assistant", ""), ("tool", "1"), ("assistant", "a")]
    assert with_turn.messages[1].tool_calls == (
        {"type": "function", "function": {"name": "look", "arguments": {"n": 1}}},
    )


def test_native_reads_scores_notes_and_outcomes() -> None:
    (conversation,) = parsed(
        {
            "title": "t",
            "system": "s",
            "tags": ["x", "y"],
            "messages": [
                {"role": "user", "content": "q"},
                {
                    "role": "assistant",
                    "content": "a",
                    "scores": [
                        {"rater": "ann", "value": 0, "note": "n", "at": "2026-01-31T12:00:00Z"},
                        {"value": 1},
                    ],
                },
            ],
            "outcomes": [{"rater": "ann", "value": -0.5}],
        }
    )
    ann, nameless = conversation.messages[1].scores
    assert (ann.rater, ann.value, ann.note) == ("ann", 0.0, "n")
    assert ann.at is not None and ann.at.isoformat() == "2026-01-31T12:00:00+00:00"
    assert (nameless.rater, nameless.value) == ("imported", 1.0)
    assert conversation.outcomes == (Score(rater="ann", value=-0.5),)
    assert (conversation.title, conversation.system, conversation.tags) == ("t", "s", ("x", "y"))


def test_the_openai_export_can_be_read_back() -> None:
    conversation = Conversation(
        system="s",
        messages=(
            Message(role=Role.USER, content="q"),
            Message(role=Role.ASSISTANT, content="", tool_calls=(CALL,)),
            Message(role=Role.TOOL, content="1", tool_call_id="c1"),
            Message(role=Role.ASSISTANT, content="a"),
        ),
    )
    result = parse(write([conversation], "openai").encode())
    assert (result.format, result.conversations) == ("openai", (conversation,))


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
