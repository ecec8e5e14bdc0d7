"""What happens to files that are cut off, damaged, or at odds with themselves."""

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from db.errors import DataError
from db.formats import FileKind, Source, detect
from db.records import IssueOutcome
from tests.db.formats.reading import clean, found, lines, outcomes_of, said, taken

ROW = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
SAID = [("user", "q"), ("assistant", "a")]


def talk(text: str) -> dict[str, object]:
    return {"messages": [{"role": "assistant", "content": text}]}


@pytest.mark.parametrize("cut", [1, 5, 20, 40])
def test_a_truncated_last_line_is_skipped_and_the_others_are_read(cut: int) -> None:
    data = lines(ROW, ROW, ROW)
    conversations, issues = taken(data[: -cut - 1])
    assert [said(c) for c in conversations] == [SAID] * 2
    (issue,) = issues
    assert (issue.row, issue.field) == (3, "line 3")
    assert issue.reason == "the file ends in the middle of it"


@pytest.mark.parametrize("cut", [2, 5, 20, 40])
def test_a_truncated_list_gives_the_entries_before_the_cut(cut: int) -> None:
    data = json.dumps([ROW, ROW, ROW]).encode()
    conversations, issues = taken(data[:-cut])
    assert [said(c) for c in conversations] == [SAID] * 2
    assert len(issues) == 1
    assert issues[0].reason == "the file ends in the middle of it"


def test_a_broken_line_is_skipped_with_its_line_and_column() -> None:
    data = b"\n" + lines(ROW) + b'{"messages": [}\n' + lines(ROW)
    conversations, issues = taken(data)
    assert len(conversations) == 2
    (issue,) = issues
    assert (issue.row, issue.field) == (2, "line 3, column 15")
    assert issue.reason.startswith("the JSON is malformed")
    assert issue.outcome is IssueOutcome.SKIPPED


def test_a_broken_only_line_blames_its_own_line() -> None:
    with pytest.raises(DataError, match="line 1, column 11: the JSON is malformed"):
        found(b'{"a": [1, }\n')
    with pytest.raises(DataError, match="line 1, column 1: the file ends in the middle"):
        found(b'{"messages": [\n')


def test_a_document_that_is_malformed_in_the_middle_is_refused_while_it_is_read() -> None:
    data = json.dumps([ROW] * 3).encode()[:-1] + b", {oops}, " + json.dumps(ROW).encode() + b"]"
    with pytest.raises(DataError, match="the JSON is malformed"):
        taken(data)


def test_a_half_written_archive_gives_the_rows_before_and_says_so() -> None:
    rows = [talk(f"{i} {hash(str(i))}") for i in range(2000)]
    packed = gzip.compress(lines(*rows))
    conversations, issues = taken(packed[: len(packed) // 2])
    assert 500 < len(conversations) < 2000
    assert [said(c)[0][1] for c in conversations] == [
        row["messages"][0]["content"] for row in rows[: len(conversations)]  # type: ignore[index]
    ]  # fmt: skip
    assert "the gzip archive ends in the middle" in issues[-1].reason
    assert {i.reason for i in issues[:-1]} <= {"the file ends in the middle of it"}


def test_a_damaged_archive_is_refused() -> None:
    packed = bytearray(gzip.compress(lines(*[talk(str(i)) for i in range(3000)])))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(DataError):
        taken(bytes(packed))


def test_archives_of_every_kind_are_unpacked() -> None:
    table = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([ROW]), table)
    for data in (lines(ROW), json.dumps([ROW]).encode(), table.getvalue(),
                 b"conversation_id,role,content\n1,user,q\n1,assistant,a\n"):  # fmt: skip
        assert [said(c) for c in clean(data)] == [SAID]
        assert [said(c) for c in clean(gzip.compress(data))] == [SAID]


def test_mixed_line_ends() -> None:
    row = json.dumps(ROW).encode()
    assert [said(c) for c in clean(b"\r\n".join([row, row + b"\n" + row, row + b"\r" + row]))] == [
        SAID
    ] * 5
    table = b"conversation_id,role,content\r1,user,q\n1,assistant,a\r\n"
    assert [said(c) for c in clean(table)] == [SAID]


def test_csv_rows_that_break_the_rules_are_skipped_one_by_one() -> None:
    data = (
        b"conversation_id,role,content\n"
        b"1,user,q\n"
        b'1,user,"a"b\n'
        b"1,user,x,too many\n"
        b"1,assistant,a\n"
        b'2,assistant,"never closed\n3,user,x\n'
    )
    conversations, issues = taken(data)
    assert [said(c) for c in conversations] == [SAID]
    assert [(i.row, i.field) for i in issues] == [(2, "line 3"), (3, "line 4"), (5, "line 6")]


def test_a_csv_record_that_the_end_of_the_file_cuts_off() -> None:
    conversations, issues = taken(b"conversation_id,role,content\n1,assistant,a\n1,us")
    assert len(conversations) == 1
    assert [(i.row, i.reason) for i in issues] == [(2, "the file ends in the middle of it")]


def test_duplicate_ids_in_a_tree() -> None:
    q = {"message_id": "q", "parent_id": None, "text": "q", "role": "prompter"}
    a = {"message_id": "a", "parent_id": "q", "text": "a", "role": "assistant"}
    conversations, issues = taken(lines(q, a, a, {**a, "text": "other"}))
    assert [said(c) for c in conversations] == [SAID]
    assert outcomes_of(issues) == [(3, IssueOutcome.MERGED), (4, IssueOutcome.SKIPPED)]


def test_duplicate_turns_of_a_table() -> None:
    data = b"conversation_id,turn,role,content\n1,1,user,q\n1,2,assistant,a\n1,2,assistant,a\n1,2,assistant,b\n"
    conversations, issues = taken(data)
    assert [said(c) for c in conversations] == [SAID]
    assert outcomes_of(issues) == [(3, IssueOutcome.MERGED), (4, IssueOutcome.SKIPPED)]


def test_cycles_and_orphans_in_trees() -> None:
    def message(id: str, parent: str | None, role: str = "assistant") -> dict[str, object]:
        return {
            "message_tree_id": "t",
            "message_id": id,
            "parent_id": parent,
            "text": id,
            "role": role,
        }

    conversations, issues = taken(
        lines(
            message("q", None, "prompter"),
            message("a", "q"),
            message("x", "y"),
            message("y", "x"),
            message("self", "self"),
            message("orphan", "gone"),
        )
    )
    assert [said(c) for c in conversations] == [
        [("user", "q"), ("assistant", "a")],
        [("assistant", "orphan")],
    ]
    assert outcomes_of(issues) == [
        (6, IssueOutcome.FLAGGED), (3, IssueOutcome.SKIPPED), (4, IssueOutcome.SKIPPED), (5, IssueOutcome.SKIPPED)
    ]  # fmt: skip
    rows = b"id,parent_id,prompt,answer\n1,2,q,a\n2,1,q,b\n3,9,q,a\n"
    conversations, issues = taken(rows)
    assert [said(c) for c in conversations] == [SAID]
    assert outcomes_of(issues) == [
        (1, IssueOutcome.SKIPPED),
        (2, IssueOutcome.SKIPPED),
        (3, IssueOutcome.FLAGGED),
    ]


def test_a_long_chain_is_no_recursion() -> None:
    rows = [
        {
            "message_id": str(i),
            "parent_id": str(i - 1) if i else None,
            "text": "x",
            "role": "assistant",
        }
        for i in range(1500)
    ]
    (conversation,) = clean(lines(*rows))
    assert len(conversation.messages) == 1500


def test_numbers_and_dates_as_text() -> None:
    data = (
        b'conversation_id,turn,role,content,reward\n1,"2.0",assistant,a," 0,5 "\n1,"1",user,q,n/a\n'
    )
    (conversation,), _ = taken(data)
    assert said(conversation) == [("user", "q"), ("assistant", "a", 0.5)]
    dated = {"title": "t", "created_at": "2026-01-31", **ROW}
    (conversation,) = clean(lines(dated))
    assert conversation.created_at is not None
    assert conversation.created_at.isoformat() == "2026-01-31T00:00:00+00:00"
    table = b"conversation_id,turn,role,content\n1,2026-01-02,user,q\n1,2026-01-01,assistant,a\n"
    (conversation,), issues = taken(table)
    assert said(conversation) == SAID  # the file's order, and a word about it
    assert [i.field for i in issues] == ["turn"]


def test_parquet_times_missing_values_and_nested_messages() -> None:
    table = io.BytesIO()
    rows = [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": None,
         "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]},
        {"messages": [{"role": "assistant", "content": "a", "score": 0.0}]},
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), table)
    data = table.getvalue()
    assert found(data).kind is FileKind.PARQUET
    first, second = clean(data)
    assert first.messages[1].tool_calls == ({"function": {"name": "f", "arguments": "{}"}},)
    assert said(second) == [("assistant", "a", 0.0)]
    with pytest.raises(DataError, match="Parquet file is damaged or cut off"):
        taken(data[:-10])


def test_a_file_that_goes_away_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    with pytest.raises(DataError, match="cannot be read"):
        Source.of_path(path)
    path.write_bytes(lines(ROW))
    file = Source.of_path(path)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        detect(file)
