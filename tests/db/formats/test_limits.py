"""Files made to do harm, or merely huge: what they may take is bounded, and they are told why."""

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from db.errors import DataError
from db.formats import (
    Parsed,
    Source,
    csv_rows,
    json_document,
    json_lines,
    opening,
    read,
    reading,
    source,
)
from tests.db.formats.reading import clean, lines, said, taken

ROW = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
SAID = [("user", "q"), ("assistant", "a")]


def talk(text: str) -> dict[str, object]:
    return {"messages": [{"role": "assistant", "content": text}]}


def test_a_bomb_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "HARMLESS_BYTES", 32 * 2**20)  # 64 MB take longer
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


@pytest.mark.parametrize(
    ("begin", "blank"),
    [
        (b"[", b" "),
        (b"[", b"\t \r\n"),
        (b"{", b"\n"),
        (lines(ROW), b"\n"),
        (lines(ROW), b" \r\n"),
        (b"conversation_id,role,content\n", b"\r\n"),
        ("[".encode("utf-16"), " ".encode("utf-16-le")),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_of_nothing_but_blanks_is_given_up_early(
    begin: bytes, blank: bytes, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "MOST_BLANK_BYTES", 2**20)  # instead of 16 MB
    data = pack(begin + blank * (4 * 2**20 // len(blank)))
    with pytest.raises(DataError, match="nothing but blanks or empty lines") as caught:
        taken(data)
    assert caught.value.remedy


def test_empty_lines_are_passed_over_and_counted() -> None:
    conversations, issues = taken(lines(ROW, ROW) + b"\r\n" * 1_500_000 + b"{oops}\n")
    assert [said(c) for c in conversations] == [SAID] * 2
    assert [(i.row, i.field) for i in issues] == [(3, "line 1500003, column 2")]


def test_a_file_in_which_no_row_fits_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_IN_VAIN", 50)
    with pytest.raises(DataError, match="none of its first 50 rows can be read as OpenAI messages"):
        taken(json.dumps([1] * 60).encode(), format="openai")
    rows = [*[1] * 40, ROW, *[1] * 60]
    conversations, issues = taken(json.dumps(rows).encode(), format="openai")
    assert (len(conversations), len(issues)) == (1, 100)


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
