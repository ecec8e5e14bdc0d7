"""Tables: a row for each turn, or for each question and answer."""

import json

from db.records import IssueOutcome, Score
from tests.db.formats.reading import COLOUR, clean, outcomes_of, prompt_group, said, taken


def test_csv_with_a_row_for_each_turn_scattered_and_out_of_order() -> None:
    data = (
        b"Conversation_ID;turn;speaker;text;reward\r\n"
        b"k1;2;assistant;Blue.;0\r\n"
        b"k2;1;user;Hi;\r\n"
        b"k1;1;human;Name a colour.;\r\n"
        b'k2;2;assistant;"Hello\r\n""you""";\r\n'
    )
    conversations, issues = taken(data)
    assert [said(c) for c in conversations] == [
        [("user", COLOUR), ("assistant", "Blue.", 0.0)],
        [("user", "Hi"), ("assistant", 'Hello\r\n"you"')],
    ]
    (issue,) = issues
    assert (issue.row, issue.outcome) == (1, IssueOutcome.REPAIRED)
    assert "order of their turns" in issue.reason


def test_csv_with_a_row_for_each_question_and_parents() -> None:
    data = (
        b"id,parent_id,prompt,answer,system,score\n"
        b"1,,Hi,Hello,s,\n"
        b"2,1,A colour?,Blue.,,1\n"
        b"3,1,A colour?,No.,,-1\n"
        b"4,,Other,Yes,,0.5\n"
    )
    first, second, third = clean(data)
    shared = [("user", "Hi"), ("assistant", "Hello"), ("user", "A colour?")]
    assert said(first) == [*shared, ("assistant", "Blue.", 1.0)]
    assert said(second) == [*shared, ("assistant", "No.", -1.0)]
    assert said(third) == [("user", "Other"), ("assistant", "Yes", 0.5)]
    assert first.system == second.system == "s"
    assert first.group == second.group == prompt_group("Hi")
    assert third.group == ""


def test_csv_raters_of_one_turn_are_merged() -> None:
    data = (
        b"conversation_id,turn,role,content,rating,rater\n"
        b"1,1,user,Hi,,\n1,2,assistant,Hello,5,ann\n1,2,assistant,Hello,1,bob\n"
    )
    (conversation,), issues = taken(data)
    assert conversation.messages[1].scores == (
        Score(rater="ann", value=1.0),
        Score(rater="bob", value=0.0),
    )
    assert outcomes_of(issues) == [(3, IssueOutcome.MERGED)]


def test_tables_in_parquet_and_json_are_read_like_csv() -> None:
    rows = [
        {"conversation_id": 1, "turn": 1, "role": "user", "content": "Hi"},
        {"conversation_id": 1, "turn": 2, "role": "assistant", "content": "Hello", "reward": 0.5},
    ]
    (conversation,) = clean(json.dumps(rows).encode())
    assert said(conversation) == [("user", "Hi"), ("assistant", "Hello", 0.5)]
