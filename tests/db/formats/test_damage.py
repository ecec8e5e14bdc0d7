"""What happens to files that are cut off, damaged, oddly encoded or made to do harm."""

import csv
import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from db.errors import DataError
from db.formats import (
    ENCODINGS,
    FileKind,
    Parsed,
    Source,
    csv_rows,
    detect,
    encoding_name,
    json_document,
    json_lines,
    read,
    source,
)
from db.records import ImportIssue, IssueOutcome
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
    assert [said(c) for c in conversations] == [SAID] * (2 if cut > 2 else 3) or cut == 2
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


def test_a_bomb_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "HARMLESS_BYTES", 32 * 2**20)  # 256 MB take too long here
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb", compresslevel=9) as packer:
        row = lines(talk("x" * 2**20))
        for _ in range(64):
            packer.write(row)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="200 times its size"):
            for item in read(Source.of_bytes(bomb.getvalue())):
                del item
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


@pytest.fixture
def small_rows(monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows may have 2 MB, so that tests need not write 64."""
    for reader in (csv_rows, json_document, json_lines):
        monkeypatch.setattr(reader, "LARGEST_ROW_BYTES", 2**21)
    return 2**21


@pytest.mark.parametrize("begin", [b'{"a": "', b"conversation_id,role,content\n1,user,"])
def test_a_line_without_end_is_not_kept_in_memory(small_rows: int, begin: bytes) -> None:
    with gzip.GzipFile(fileobj=(bomb := io.BytesIO()), mode="wb", compresslevel=1) as packer:
        packer.write(begin)
        for _ in range(30):
            packer.write(b"x" * small_rows)
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            taken(bomb.getvalue())
        assert tracemalloc.get_traced_memory()[1] < 10 * small_rows
    finally:
        tracemalloc.stop()


def test_mixed_line_ends() -> None:
    row = json.dumps(ROW).encode()
    assert [said(c) for c in clean(b"\r\n".join([row, row + b"\n" + row, row + b"\r" + row]))] == [
        SAID
    ] * 5
    table = b"conversation_id,role,content\r1,user,q\n1,assistant,a\r\n"
    assert [said(c) for c in clean(table)] == [SAID]


@pytest.mark.parametrize(
    "data",
    [lines(ROW), lines(ROW, ROW), b"conversation_id,role,content\n1,user,q\n1,assistant,a\n"],
)
def test_a_byte_order_mark_is_no_content(data: bytes) -> None:
    assert said(clean(b"\xef\xbb\xbf" + data)[0]) == SAID


def test_cp1252_is_told_apart_and_reported() -> None:
    text = "caf\u00e9 \u20ac \u201cquoted\u201d"
    row = json.dumps(talk(text), ensure_ascii=False)
    for data in (f"{row}\n{row}\n".encode("cp1252"), f"[{row}]".encode("cp1252")):
        conversations, issues = taken(data)
        assert {said(c)[0][1] for c in conversations} == {text}
        (issue,) = issues
        assert issue.row == 0 and "(line 1) and was read as Windows-1252" in issue.reason
    (conversation,), issues = taken(
        f"conversation_id,role,content\n1,assistant,{text}\n".encode("cp1252")
    )
    assert said(conversation) == [("assistant", text)]
    assert "(line 2)" in issues[0].reason


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"), ("utf-32", "utf-32"), ("cp1251", "cp1251")],
)
def test_other_encodings_are_told_apart_and_reported(encoding: str, name: str) -> None:
    text = "\u041f\u0440\u0438\u0432\u0435\u0442, \u043a\u0430\u043a \u0434\u0435\u043b\u0430? \u042f \u0445\u043e\u0442\u0435\u043b \u0431\u044b \u0443\u0437\u043d\u0430\u0442\u044c, \u0433\u0434\u0435 \u043c\u043e\u044f \u043f\u043e\u0441\u044b\u043b\u043a\u0430."
    row = json.dumps(talk(text), ensure_ascii=False)
    data = f"{row}\n{row}\n".encode(encoding)
    assert found(data).encoding == name
    conversations, issues = taken(data)
    assert [said(c)[0][1] for c in conversations] == [text] * 2
    assert [i.row for i in issues] == [0]


def test_an_encoding_chosen_by_hand_wins_and_its_misfits_are_reported() -> None:
    text = "\u043f\u0440\u0438\u0432\u0435\u0442, \u0447\u0442\u043e \u0435\u0449\u0451?"
    row = json.dumps(talk(text), ensure_ascii=False)
    data = f"{row}\n{row}\n".encode("koi8-r")
    wrong = found(data).facts.encoding
    assert wrong.name != "koi8-r"
    assert "was read as" in wrong.remark
    right = detect(Source.of_bytes(data), encoding="KOI8_R")
    assert (right.encoding, right.facts.encoding.confidence, right.issues) == ("koi8-r", 1.0, ())
    items = list(read(Source.of_bytes(data), detection=right))
    assert [said(i.conversation)[0][1] for i in items if isinstance(i, Parsed)] == [text] * 2
    assert len(items) == 2

    misread = detect(Source.of_bytes(data), encoding="cp874")
    assert misread.facts.encoding.confidence < 1
    (*_, last) = read(Source.of_bytes(data), detection=misread)
    assert isinstance(last, ImportIssue)
    assert "are no Windows-874" in last.reason
    with pytest.raises(DataError, match=r"no encoding named 'rot13'.*utf-8, utf-16"):
        detect(Source.of_bytes(data), encoding="rot13")


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_that_can_be_chosen_reads_what_it_writes(name: str) -> None:
    data = lines(ROW, ROW).decode().encode(name)
    assert detect(Source.of_bytes(data), encoding=name).format == "openai"
    assert encoding_name(name) == name


def test_a_line_in_another_encoding_is_mended_and_named() -> None:
    good = json.dumps(talk("gr\u00fcn"), ensure_ascii=False)
    filler = [good.encode()] * 20_000  # past what is looked at to judge the encoding
    conversations, issues = taken(b"\n".join([*filler, good.encode("cp1252"), good.encode()]))
    assert {said(c)[0][1] for c in conversations} == {"gr\u00fcn"}
    (issue,) = issues
    assert (issue.row, issue.outcome) == (20_001, IssueOutcome.REPAIRED)


def test_cells_of_ten_megabytes() -> None:
    text = ("a,b" * 100 + "\n") * (10 * 2**20 // 301)
    table = io.StringIO()
    csv.writer(table).writerows([["conversation_id", "role", "content"], ["1", "assistant", text]])
    for data in (table.getvalue().encode(), lines(talk(text)), json.dumps([talk(text)]).encode()):
        (conversation,) = clean(data)
        assert said(conversation) == [("assistant", text)]


def test_rows_beyond_the_limit_are_refused(small_rows: int) -> None:
    rows = [ROW, talk("x" * small_rows), ROW]
    conversations, issues = taken(lines(*rows))
    assert len(conversations) == 2
    assert [(i.row, i.reason) for i in issues] == [(2, "the row is longer than 64 MB")]
    with pytest.raises(DataError, match="longer than 64 MB"):
        taken(json.dumps(rows).encode(), format="openai")


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


def test_memory_stays_bounded_while_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        for _ in range(400):
            file.write(lines(talk("x" * 100_000)))
    tracemalloc.start()
    try:
        count = sum(isinstance(item, Parsed) for item in read(Source.of_path(path)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 400
    assert peak < path.stat().st_size / 2
