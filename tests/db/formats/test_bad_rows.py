"""A bad row of any format is skipped with its field, a reason and a remedy; the others come in."""

import csv
import io
import json

import pytest

from db.formats import FORMATS
from db.records import IssueOutcome
from tests.db.formats.reading import lines, taken

NODE = {
    "id": "a",
    "parent": None,
    "message": {"author": {"role": "user"}, "content": {"parts": ["q"]}},
}
REPLIES = [{"response": "a"}, {"model": "m"}]

BAD = [
    ("alpaca", {"instruction": 5, "output": "a"}, "instruction", "a number stands where text"),
    ("alpaca", {"output": "a"}, "instruction", "missing"),
    ("alpaca", {"instruction": "q", "output": None}, "output", "null stands where text"),
    ("alpaca", {"instruction": "q", "output": "a", "input": []}, "input", "a list stands where text"),
    ("alpaca", {"instruction": "q", "output": "a", "history": [["q"]]}, "history[0]", "there are 1 texts"),
    ("alpaca", {"instruction": "q", "output": "a", "history": [["q", 1]]}, "history[0][1]", "a number stands where text"),
    ("hh", {"chosen": "\n\nHuman: q", "rejected": "\n\nHuman: q\n\nAssistant: a"}, "chosen", "does not end with a reply"),
    ("hh", {"chosen": "\n\nHuman: q\n\nAssistant: a", "rejected": None}, "rejected", "null stands where text"),
    ("preference", {"prompt": 1, "chosen": "a", "rejected": "b"}, "prompt", "a number stands where text"),
    ("preference", {"prompt": "q", "chosen": "a"}, "rejected", "null stands where text"),
    ("preference", {"prompt": "q", "chosen": [], "rejected": "b"}, "chosen", "does not end with a reply"),
    ("preference", {"prompt": [{"role": "x", "content": "q"}], "chosen": "a", "rejected": "b"}, "prompt[0].role", "'x' is unknown"),
    ("kto", {"prompt": "q", "label": True}, "completion", "missing"),
    ("kto", {"prompt": "q", "completion": 3, "label": True}, "completion", "a number stands where text"),
    ("kto", {"prompt": "q", "completion": "a", "label": True, "system": 3}, "system", "a number stands where text"),
    ("completions", {"prompt": "q", "score": 1}, "completion", "missing"),
    ("completions", {"prompt": "q", "completion": "a", "score": 7}, "score", "7 is outside"),
    ("completions", {"prompt": "q", "completion": "a", "score": True}, "score", "True is not a number"),
    ("oasst", {"message_tree_id": "t", "prompt": {"message_id": "x", "text": "q"}}, "prompt.role", "missing"),
    ("oasst", {"message_tree_id": "t", "prompt": {"message_id": "x", "role": "wizard", "text": "q"}}, "prompt.role", "'wizard' is unknown"),
    ("oasst", {"message_id": "x", "parent_id": None, "role": "prompter"}, "text", "missing"),
    ("oasst", {"message_id": "x", "parent_id": None, "role": "prompter", "text": 1}, "text", "a number stands where text"),
    ("ultrafeedback", {"instruction": 1, "completions": REPLIES}, "instruction", "a number stands where text"),
    ("ultrafeedback", {"instruction": "q", "completions": {}}, "completions", "an object stands where a list"),
    ("ultrafeedback", {"instruction": "q", "completions": REPLIES}, "completions[1].response", "missing"),
    ("ultrafeedback", {"instruction": "q", "completions": [{"response": "a", "annotations": 5}]}, "completions[0].annotations", "a number stands where an object"),
    ("helpsteer", {"response": "a", "helpfulness": 3}, "prompt", "missing"),
    ("helpsteer", {"prompt": "q", "response": None, "helpfulness": 3}, "response", "null stands where text"),
    ("helpsteer", {"prompt": "q\n<extra_id_1>Wizard\nx", "response": "a", "helpfulness": 3}, "prompt", "'Wizard' is unknown"),
    ("chatgpt", {"mapping": []}, "mapping", "a list stands where an object"),
    ("chatgpt", {"mapping": {"a": 5}}, "mapping.a", "a number stands where an object"),
    ("chatgpt", {"mapping": {"a": {**NODE, "message": {"author": {"role": "user"}}}}}, "mapping.a.content", "missing"),
    ("chatgpt", {"mapping": {"a": {**NODE, "parent": 3}}}, "mapping.a.parent", "a number stands where text"),
    ("label-studio", {"data": 5, "annotations": []}, "data", "a number stands where an object"),
    ("label-studio", {"data": {"picture": "x.png"}, "annotations": []}, "data", "no conversation was found"),
    ("label-studio", {"data": {"prompt": "q", "response": "a"}, "annotations": [{"result": 5}]}, "annotations[0].result", "a number stands where a list"),
    ("argilla", {"fields": [], "responses": {}}, "fields", "a list stands where an object"),
    ("argilla", {"fields": {"picture": "x.png"}, "responses": {}}, "fields", "no conversation was found"),
    ("argilla", {"fields": {"prompt": "q", "response": "a"}, "responses": {"rating": 5}}, "responses.rating", "a number stands where a list"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "row", "field", "reason"), BAD)
def test_a_bad_row_is_skipped_and_those_around_it_come_in(
    format: str, row: object, field: str, reason: str
) -> None:
    example = FORMATS[format].example
    good = json.loads(example) if example.startswith("[") else [
        json.loads(line) for line in example.splitlines()
    ]  # fmt: skip
    alone, _ = taken(lines(*good), format=format)
    conversations, issues = taken(lines(*good, row), format=format)
    assert [c.messages for c in conversations] == [c.messages for c in alone]
    (issue,) = [i for i in issues if i.outcome is IssueOutcome.SKIPPED]
    assert (issue.row, issue.field) == (len(good) + 1, field)
    assert reason in issue.reason
    assert issue.remedy


def table(*records: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(records)
    return text.getvalue().encode()


TURNS = ["conversation_id", "turn", "role", "content", "reward"]
PAIRS = ["id", "parent_id", "prompt", "answer"]


@pytest.mark.parametrize(
    ("header", "records", "field", "reason"),
    [
        (TURNS, [["2", "1", "wizard", "x", ""]], "role", "'wizard' is unknown"),
        (TURNS, [["2", "1", "", "x", ""]], "role", "'' is unknown"),
        (TURNS, [["2", "1", "assistant", "x", "9"]], "reward", "9 is outside"),
        (TURNS, [["2", "1", "assistant", "x", "good"]], "reward", "'good' is not a number"),
        (TURNS, [["2", "1", "system", "x", ""]], "content", "there is no message"),
        (PAIRS, [["9", "", "", ""]], "prompt", "neither a question nor an answer"),
    ],
)
def test_a_bad_record_of_a_table_is_skipped(
    header: list[str], records: list[list[str]], field: str, reason: str
) -> None:
    good = [["1", "1", "user", "q", ""], ["1", "2", "assistant", "a", "0.5"]]
    if header is PAIRS:
        good = [["1", "", "q", "a"], ["2", "1", "q2", "a2"]]
    conversations, issues = taken(table(header, *good, *records), format="csv")
    assert len(conversations) == 1
    (issue,) = [i for i in issues if i.outcome is IssueOutcome.SKIPPED]
    assert (issue.row, issue.field) == (3, field)
    assert reason in issue.reason
    assert issue.remedy


def test_circles_and_orphans_in_an_export_of_chatgpt() -> None:
    nodes = {
        id: {**NODE, "id": id, "parent": parent}
        for id, parent in (("a", None), ("x", "y"), ("y", "x"), ("self", "self"), ("lost", "gone"))
    }
    conversations, issues = taken(lines({"mapping": nodes, "current_node": "a"}), format="chatgpt")
    assert [len(c.messages) for c in conversations] == [1, 1]
    outcomes = [(i.field, i.outcome) for i in issues if i.field.startswith("mapping.")]
    assert outcomes == [
        ("mapping.lost", IssueOutcome.FLAGGED),
        ("mapping.x", IssueOutcome.SKIPPED),
        ("mapping.y", IssueOutcome.SKIPPED),
        ("mapping.self", IssueOutcome.SKIPPED),
    ]
