"""The export of ChatGPT: the active branch, and side branches as conversations of their own."""

import json

from db.records import IssueOutcome
from tests.db.formats.reading import COLOUR, prompt_group, said, taken


def node(id: str, parent: str | None, role: str = "", *parts: object) -> dict[str, object]:
    message = {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": list(parts)},
        "metadata": {"model_slug": "m"} if role == "assistant" else {},
    }
    return {"id": id, "parent": parent, "message": message if role else None, "children": []}


def test_chatgpt_shows_the_active_branch_and_reports_the_others() -> None:
    nodes = [
        node("root", None),
        node("s", "root", "system", ""),
        node("q", "s", "user", COLOUR),
        node("a1", "q", "assistant", "No."),
        node("a2", "q", "assistant", "Blue.", {"content_type": "image_asset_pointer"}),
        node("u", "a2", "user", "Thanks"),
    ]
    export = {"title": "Colours", "current_node": "u", "mapping": {n["id"]: n for n in nodes}}
    data = json.dumps([export]).encode()
    conversations, issues = taken(data)
    assert [said(c) for c in conversations] == [
        [("user", COLOUR), ("assistant", "Blue."), ("user", "Thanks")],
        [("user", COLOUR), ("assistant", "No.")],
    ]
    assert [c.title for c in conversations] == ["Colours"] * 2
    assert {c.group for c in conversations} == {prompt_group(COLOUR)}
    assert conversations[0].messages[1].model == "m"
    assert [(i.outcome, i.reason) for i in issues] == [
        (IssueOutcome.REPAIRED, "a picture, sound or file was left out of a message"),
        (IssueOutcome.REPAIRED, "1 side branch of the conversation came in as conversations of their own, in the same group"),
    ]  # fmt: skip
