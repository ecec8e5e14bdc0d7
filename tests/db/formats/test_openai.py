"""OpenAI's chat files: parts, tool calls, developer messages, null content."""

import json

from db.enums import Role
from db.formats import write
from db.records import Conversation, Message
from tests.db.formats.reading import clean, found, lines, said

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}


def test_openai_with_tools_parts_developer_and_null_content() -> None:
    data = lines(
        {
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "user", "content": "again"},
                {"role": "assistant", "content": None, "tool_calls": [CALL], "score": 0},
                {"role": "tool", "tool_call_id": "c1", "content": "1"},
                {"role": "assistant", "content": "done", "score": None},
                {"role": "user", "content": "thanks"},
            ]
        }
    )  # fmt: skip
    (conversation,) = clean(data)
    assert conversation.system == "be brief"
    assert said(conversation) == [
        ("user", "ab"), ("user", "again"), ("assistant", "", 0.0), ("tool", "1"),
        ("assistant", "done"), ("user", "thanks"),
    ]  # fmt: skip
    assert conversation.messages[2].tool_calls == (CALL,)
    assert conversation.messages[3].tool_call_id == "c1"
    assert len(conversation.assistant_messages) == 2  # what can be scored


def test_a_later_developer_message_is_a_system_message_where_it_stands() -> None:
    said_by = ["developer", "user", "developer", "assistant"]
    data = lines({"messages": [{"role": role, "content": role[0]} for role in said_by]})
    (conversation,) = clean(data)
    assert conversation.system == "d"
    assert said(conversation) == [("user", "u"), ("system", "d"), ("assistant", "a")]
    row = json.loads(write([conversation], "openai"))
    assert [message["role"] for message in row["messages"]] == [
        "system", "user", "system", "assistant"
    ]  # fmt: skip
    assert clean(lines(row)) == [conversation]


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
    data = write([conversation], "openai").encode()
    assert (found(data).format, clean(data)) == ("openai", [conversation])
