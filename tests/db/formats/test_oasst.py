"""OpenAssistant: messages in any order, whole trees, ranks, labels, and what was left out."""

import pytest

from db.formats import Scale, ScaleKind, ScoreRule
from db.records import IssueOutcome
from tests.db.formats.reading import COLOUR, clean, found, lines, prompt_group, said, taken

TREE = [
    {"message_id": "q", "parent_id": None, "text": COLOUR, "role": "prompter"},
    {"message_id": "a", "parent_id": "q", "text": "Blue.", "role": "assistant", "rank": 0},
    {"message_id": "b", "parent_id": "q", "text": "Well.", "role": "assistant", "rank": 1},
    {"message_id": "c", "parent_id": "q", "text": "No.", "role": "assistant", "rank": 2},
    {"message_id": "d", "parent_id": "a", "text": "Why?", "role": "prompter"},
]
WAYS = [
    [("user", COLOUR), ("assistant", "Blue.", 1.0), ("user", "Why?")],
    [("user", COLOUR), ("assistant", "Well.", 0.5)],
    [("user", COLOUR), ("assistant", "No.", 0.0)],
]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 1, 0, 2, 3]])
def test_oasst_message_lines_in_any_order(order: list[int]) -> None:
    tagged = [{**TREE[i], "message_tree_id": "t"} for i in order]
    other = {"message_id": "z", "parent_id": None, "text": "x", "role": "prompter"}
    for rows in (tagged, [TREE[i] for i in order]):
        data = lines(rows[0], {**other, "message_tree_id": "u"}, *rows[1:])
        conversations, issues = taken(data)
        ways = [c for c in conversations if len(c.messages) > 1]
        assert [said(c) for c in ways] == WAYS
        assert {c.group for c in ways} == {prompt_group(COLOUR)}
        assert [i.outcome for i in issues] == [IssueOutcome.FLAGGED]  # "x" has no reply


def test_oasst_trees() -> None:
    question, best, *others, why = TREE
    tree = {
        "message_tree_id": "t",
        "tree_state": "ready_for_export",
        "prompt": {**question, "replies": [{**best, "replies": [{**why, "replies": []}]}, *others]},
    }
    assert found(lines(tree)).format == "oasst"
    assert [said(c) for c in clean(lines(tree))] == WAYS


@pytest.mark.parametrize("unwanted", [{"deleted": True}, {"review_result": False}])
def test_oasst_leaves_out_what_was_deleted_or_rejected_with_what_follows(
    unwanted: dict[str, bool],
) -> None:
    rows = [TREE[0], {**TREE[1], **unwanted}, *TREE[2:]]
    conversations, issues = taken(lines(*rows))
    assert [said(c) for c in conversations] == WAYS[1:]  # ranks still count among three
    assert [(i.row, i.outcome) for i in issues if i.outcome is IssueOutcome.SKIPPED] == [
        (2, IssueOutcome.SKIPPED), (5, IssueOutcome.SKIPPED)
    ]  # fmt: skip


def test_oasst_labels_instead_of_ranks() -> None:
    rows = [
        TREE[0],
        {**TREE[1], "labels": {"name": ["quality"], "value": [0.25], "count": [1]}},
        {**TREE[2], "labels": {"quality": {"value": 0.75, "count": 2}}},
    ]
    rule = ScoreRule((Scale(name="rank", kind=ScaleKind.RANK, high=0.0, used=False),
                      Scale(name="quality", low=0.0, high=1.0, to_low=0.0)))  # fmt: skip
    conversations, issues = taken(lines(*rows), rule=rule)
    assert issues == []
    assert [said(c)[-1] for c in conversations] == [
        ("assistant", "Blue.", 0.25), ("assistant", "Well.", 0.75)
    ]  # fmt: skip
