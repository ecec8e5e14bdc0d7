"""Every format of the list: a small file, and exactly the conversations and scores it holds."""

import json

import pytest

from db.enums import Role
from db.formats import FORMATS, Scale, ScaleKind, ScoreRule, ScoreTarget, write
from db.formats.draft import group_key
from db.records import Conversation, IssueOutcome, Message, Score
from tests.db.formats.reading import clean, found, lines, outcomes_of, said, taken

COLOUR = "Name a colour."
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}


def prompt_group(*texts: str) -> str:
    """Return the group of all that begins with these words by user and assistant."""
    roles = (Role.USER, Role.ASSISTANT)
    return group_key([Message(role=roles[i % 2], content=t) for i, t in enumerate(texts)])


@pytest.mark.parametrize("name", FORMATS)
def test_each_example_is_recognised_and_read_without_an_issue(name: str) -> None:
    data = FORMATS[name].example.encode()
    assert found(data).format == name
    assert clean(data)


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


TOOLS = ({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}},)


@pytest.mark.parametrize("tools", [list(TOOLS), json.dumps(TOOLS)])
@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "assistant", "content": "Blue."}]},
        {"title": "t", "messages": [{"role": "assistant", "content": "Blue."}]},
        {"conversations": [{"from": "gpt", "value": "Blue."}]},
        {"prompt": COLOUR, "chosen": "Blue.", "rejected": "No."},
        {"prompt": COLOUR, "completion": "Blue.", "label": True},
        {"prompt": COLOUR, "completion": "Blue.", "score": 1},
    ],
)
def test_tools_beside_what_was_said_are_kept(row: dict[str, object], tools: object) -> None:
    found_tools = [conversation.tools for conversation in clean(lines({**row, "tools": tools}))]
    assert found_tools in ([TOOLS], [TOOLS] * 2)
    bare, *_ = clean(lines({**row, "tools": "" if isinstance(tools, str) else None}))
    assert bare.tools == ()


def test_other_tools_make_another_prompt() -> None:
    row = {"prompt": COLOUR, "chosen": "Blue.", "rejected": "No."}
    groups = [c.group for c in clean(lines(row, {**row, "tools": list(TOOLS)}))]
    assert groups[0] == groups[1] != groups[2] == groups[3]


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


def test_alpaca_with_input_system_and_history() -> None:
    rows = [
        {"instruction": "Translate.", "input": "Good day", "output": "Bonjour", "system": "s",
         "history": [["Hi", "Hello"]]},
        {"instruction": "Add 1 and 1.", "input": "", "output": "2"},
    ]  # fmt: skip
    first, second = clean(json.dumps(rows).encode())
    assert first.system == "s"
    assert said(first) == [
        ("user", "Hi"), ("assistant", "Hello"),
        ("user", "Translate.\n\nGood day"), ("assistant", "Bonjour"),
    ]  # fmt: skip
    assert said(second) == [("user", "Add 1 and 1."), ("assistant", "2")]


def test_hh_transcripts_become_two_conversations_of_one_group() -> None:
    head = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: A colour?"
    data = lines({"chosen": f"{head}\n\nAssistant: Blue.", "rejected": f"{head}\n\nAssistant: No."})
    assert found(data).format == "hh"
    chosen, rejected = clean(data)
    shared = [("user", "Hi"), ("assistant", "Hello"), ("user", "A colour?")]
    assert said(chosen) == [*shared, ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [*shared, ("assistant", "No.", 0.0)]
    assert chosen.group == rejected.group == prompt_group("Hi", "Hello", "A colour?")


def test_hh_message_lists_that_repeat_the_prompt() -> None:
    ask = {"role": "user", "content": COLOUR}
    data = lines(
        {
            "prompt": COLOUR,
            "chosen": [ask, {"role": "assistant", "content": "Blue."}],
            "rejected": [ask, {"role": "assistant", "content": "No."}],
        }
    )
    assert found(data).format == "hh"
    chosen, rejected = clean(data)
    assert said(chosen) == [("user", COLOUR), ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [("user", COLOUR), ("assistant", "No.", 0.0)]
    assert chosen.group == rejected.group == prompt_group(COLOUR)


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": COLOUR, "chosen": "Blue.", "rejected": "No."},
        {"messages": [{"role": "user", "content": COLOUR}], "chosen": "Blue.", "rejected": "No."},
        {"prompt": [{"role": "user", "content": COLOUR}],
         "chosen": [{"role": "assistant", "content": "Blue."}],
         "rejected": [{"role": "assistant", "content": "No."}]},
        {"messages": [{"role": "user", "content": COLOUR}],
         "chosen": {"role": "assistant", "content": "Blue."},
         "rejected": {"role": "assistant", "content": "No."}},
    ],
)  # fmt: skip
def test_preference_pairs_in_their_variants(row: object) -> None:
    assert found(lines(row)).format == "preference"
    chosen, rejected = clean(lines(row))
    assert said(chosen) == [("user", COLOUR), ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [("user", COLOUR), ("assistant", "No.", 0.0)]
    assert chosen.group == rejected.group == prompt_group(COLOUR)


def test_a_pair_of_equal_replies_is_one_unscored_conversation() -> None:
    (conversation,), issues = taken(lines({"prompt": "q", "chosen": "a", "rejected": "a"}))
    assert said(conversation) == [("user", "q"), ("assistant", "a")]
    assert conversation.group == ""
    assert outcomes_of(issues) == [(1, IssueOutcome.FLAGGED)]


def test_kto_with_text_and_with_messages() -> None:
    data = lines(
        {"prompt": COLOUR, "completion": "Blue.", "label": True},
        {"messages": [{"role": "user", "content": COLOUR}],
         "completion": [{"role": "assistant", "content": "No."}], "label": False},
        {"prompt": COLOUR, "completion": "Red.", "label": None},
    )  # fmt: skip
    assert found(data).format == "kto"
    assert [said(c)[-1] for c in clean(data)] == [
        ("assistant", "Blue.", 1.0), ("assistant", "No.", 0.0), ("assistant", "Red.")
    ]  # fmt: skip


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


def test_oasst_leaves_out_what_was_deleted_with_what_follows() -> None:
    rows = [{**TREE[0]}, {**TREE[1], "deleted": True}, {**TREE[2]}, {**TREE[3]}, {**TREE[4]}]
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


def test_ultrafeedback_overall_scores_ratings_and_contradictions() -> None:
    def completion(text: str, overall: object, *ratings: str) -> dict[str, object]:
        names = ("helpfulness", "honesty")
        aspects = {n: {"Rating": r, "Rationale": "."} for n, r in zip(names, ratings, strict=False)}
        return {"model": "m", "response": text, "overall_score": overall, "annotations": aspects}

    data = lines(
        {
            "instruction": COLOUR,
            "completions": [
                completion("Blue.", 10.0, "5", "N/A"),
                completion("Well.", 5.5, "3", "3"),
                completion("No.", 10.0, "1", "1"),
            ],
        }
    )
    conversations, issues = taken(data)
    assert [said(c) for c in conversations] == [
        [("user", COLOUR), ("assistant", "Blue.", 1.0)],
        [("user", COLOUR), ("assistant", "Well.", 0.5)],
        [("user", COLOUR), ("assistant", "No.")],
    ]
    assert {c.group for c in conversations} == {prompt_group(COLOUR)}
    assert conversations[0].messages[1].model == "m"
    (issue,) = issues
    assert (issue.row, issue.field) == (1, "completions[2].overall_score")
    assert issue.outcome is IssueOutcome.FLAGGED
    assert "contradicts the ratings 1, 1 of 5" in issue.reason
    by_aspect = ScoreRule((Scale(name="overall_score", used=False),
                           Scale(name="helpfulness", low=1.0, high=5.0, to_low=0.0)))  # fmt: skip
    conversations, _ = taken(data, rule=by_aspect)
    assert [said(c)[1][2] for c in conversations] == [1.0, 0.5, 0.0]


def test_ultrafeedback_binarised() -> None:
    ask = {"role": "user", "content": COLOUR}
    row = {
        "prompt": COLOUR,
        "chosen": [ask, {"role": "assistant", "content": "Blue."}],
        "rejected": [ask, {"role": "assistant", "content": "No."}],
        "score_chosen": 10.0,
        "score_rejected": 5.5,
    }
    assert found(lines(row)).format == "ultrafeedback"
    chosen, rejected = clean(lines(row))
    assert said(chosen) == [("user", COLOUR), ("assistant", "Blue.", 1.0)]
    assert said(rejected) == [("user", COLOUR), ("assistant", "No.", 0.5)]
    swapped = {**row, "score_chosen": 2.0, "score_rejected": 9.0}
    conversations, issues = taken(lines(swapped))
    assert [len(c.messages[1].scores) for c in conversations] == [0, 0]
    assert outcomes_of(issues) == [(1, IssueOutcome.FLAGGED)] * 2


def test_helpsteer_grades_and_embedded_turns() -> None:
    data = lines(
        {"prompt": COLOUR, "response": "Blue.", "helpfulness": 0, "correctness": 4, "coherence": 4,
         "complexity": 2, "verbosity": 1},
        {"prompt": "Hi\n<extra_id_1>Assistant\nHello\n<extra_id_1>User\nA colour?"
                   "\n<extra_id_1>Assistant\n",
         "response": "Red.", "helpfulness": 3, "correctness": 1, "coherence": 4,
         "complexity": 2, "verbosity": 1},
    )  # fmt: skip
    first, second = clean(data)
    assert said(first) == [("user", COLOUR), ("assistant", "Blue.", 0.0)]  # zero is a score
    assert said(second) == [
        ("user", "Hi"), ("assistant", "Hello"), ("user", "A colour?"), ("assistant", "Red.", 0.75)
    ]  # fmt: skip
    both = ScoreRule(
        tuple(
            Scale(name=n, low=0.0, high=4.0, to_low=0.0, used=n in ("helpfulness", "correctness"))
            for n in ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
        )
    )
    (first, second), _ = taken(data, rule=both)
    assert (said(first)[-1][2], said(second)[-1][2]) == (0.5, 0.5)  # their mean


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


def rated(rater: object, rating: int, **where: object) -> dict[str, object]:
    value = {"rating": rating, **where}
    return {
        "completed_by": rater,
        "result": [{"from_name": "quality", "type": "rating", "value": value}],
    }


def test_label_studio_tasks_with_a_reply_a_dialogue_and_a_marked_message() -> None:
    dialogue = [{"author": "user", "text": "Hi"}, {"author": "assistant", "text": "Hello"},
                {"author": "user", "text": "Bye"}, {"author": "bot", "text": "Goodbye"}]  # fmt: skip
    tasks = [
        {"id": 1, "data": {"prompt": COLOUR, "response": "Blue."},
         "annotations": [rated(7, 5), rated({"id": 1, "email": "b@c.d"}, 1), {**rated(8, 3), "was_cancelled": True}]},
        {"id": 2, "data": {"dialogue": dialogue}, "annotations": [rated(7, 3), rated(8, 2, start="3", end="3")]},
    ]  # fmt: skip
    first, second = clean(json.dumps(tasks).encode())
    assert first.messages[1].scores == (
        Score(rater="annotator 7", value=1.0), Score(rater="b@c.d", value=0.0)
    )  # fmt: skip
    assert said(second) == [
        ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye"), ("assistant", "Goodbye", 0.25)
    ]  # fmt: skip
    assert second.outcomes == (Score(rater="annotator 7", value=0.5),)


def test_label_studio_flat_export() -> None:
    row = {"id": 4, "prompt": COLOUR, "response": "Blue.", "stars": 4, "annotator": 2,
           "annotation_id": 9, "lead_time": 3.5}  # fmt: skip
    assert found(json.dumps([row]).encode()).format == "label-studio"
    (conversation,) = clean(json.dumps([row]).encode())
    assert conversation.messages[1].scores == (Score(rater="annotator 2", value=0.75),)


CHAT = [{"role": "user", "content": COLOUR}, {"role": "assistant", "content": "Blue."}]


@pytest.mark.parametrize(
    "record",
    [
        {"fields": {"chat": CHAT}, "responses": {"rating": [
            {"value": 4, "user_id": "ann", "status": "submitted"},
            {"value": 1, "user_id": "bob", "status": "submitted"},
            {"value": 5, "user_id": "eve", "status": "discarded"}]}},
        {"fields": {"prompt": COLOUR, "response": "Blue."}, "responses": [
            {"values": {"rating": {"value": 4}}, "user_id": "ann", "status": "submitted"},
            {"values": {"rating": {"value": 1}}, "user_id": "bob", "status": "submitted"},
            {"values": {"rating": {"value": 5}}, "user_id": "eve", "status": "draft"}]},
        {"chat": CHAT, "rating.responses": [4, 1, 5], "rating.responses.users": ["ann", "bob", "eve"],
         "rating.responses.status": ["submitted", "submitted", "draft"]},
    ],
)  # fmt: skip
def test_argilla_records_have_one_rating_a_user(record: object) -> None:
    assert found(lines(record)).format == "argilla"
    (conversation,) = clean(lines(record))
    assert [(m.role.value, m.content) for m in conversation.messages] == [
        ("user", COLOUR), ("assistant", "Blue.")
    ]  # fmt: skip
    assert conversation.messages[1].scores == (
        Score(rater="ann", value=0.75), Score(rater="bob", value=0.0)
    )  # fmt: skip


def test_the_rule_says_what_a_rating_is_about() -> None:
    chat = [*CHAT, *CHAT]
    record = {"fields": {"chat": chat}, "responses": {"rating": [{"value": 4, "user_id": "ann"}]}}
    (conversation,), _ = taken(lines(record))
    assert conversation.outcomes == (Score(rater="ann", value=0.75),)
    scale = Scale(name="rating", low=1.0, high=5.0, to_low=0.0, target=ScoreTarget.LAST_REPLY)
    (conversation,), _ = taken(lines(record), rule=ScoreRule((scale,)))
    assert conversation.outcomes == ()
    assert said(conversation)[-1] == ("assistant", "Blue.", 0.75)


def test_tables_in_parquet_and_json_are_read_like_csv() -> None:
    rows = [
        {"conversation_id": 1, "turn": 1, "role": "user", "content": "Hi"},
        {"conversation_id": 1, "turn": 2, "role": "assistant", "content": "Hello", "reward": 0.5},
    ]
    (conversation,) = clean(json.dumps(rows).encode())
    assert said(conversation) == [("user", "Hi"), ("assistant", "Hello", 0.5)]


def test_sharegpt_rows_with_lists_as_text() -> None:
    row = {
        "conversations": json.dumps(
            [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
        )
    }
    (conversation,) = clean(lines(row))
    assert isinstance(conversation, Conversation)
    assert said(conversation) == [("user", "q"), ("assistant", "a")]
