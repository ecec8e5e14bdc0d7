"""Zip archives: their files come in one by one; nothing lands under their names, bombs are refused."""

import gzip
import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from db.engine import Database
from db.errors import DataError
from db.formats import Parsed, Source, read, source, write_to, zip_files
from db.import_reading import SourceFile
from db.importing import import_files
from db.records import ImportFile
from tests.db.building import scored_talk
from tests.db.formats.reading import lines

ROW = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}


def packed(**files: bytes) -> bytes:
    """Return an archive; two underscores in a name stand for a slash, one for a dot, ~ for one."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/").replace("_", ".").replace("~", "_"), data)
    return stream.getvalue()


def table() -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([ROW]), stream)
    return stream.getvalue()


def test_files_of_every_kind_are_read_where_they_lie_and_others_are_passed_over(
    tmp_path: Path,
) -> None:
    data = packed(
        a_jsonl=lines(ROW, ROW), deep__b_json_gz=gzip.compress(json.dumps([ROW]).encode()),
        c_parquet=table(), chat_html=b"<html>", **{"~~MACOSX__a_jsonl": b""}, __hidden_json=b"",
    )  # fmt: skip
    (tmp_path / "all.zip").write_bytes(data)
    members = zip_files(Source.of_path(tmp_path / "all.zip"))
    counts = {m.name: sum(isinstance(i, Parsed) for i in read(m)) for m in members[:3]}
    assert counts == {"all.zip/a.jsonl": 2, "all.zip/deep/b.json.gz": 1, "all.zip/c.parquet": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["all.zip"]


def test_a_file_that_is_no_conversation_is_left_out_and_the_others_come_in(
    database: Database,
) -> None:
    data = packed(conversations_json=json.dumps([ROW]).encode(), user_json=b'{"email": "a@b.c"}')
    report = import_files(
        database, [SourceFile(ImportFile(name="e.zip"), Source.of_bytes(data, "e.zip"))]
    )
    assert (report.conversations, report.format) == (1, "openai")
    (issue,) = report.skipped
    assert issue.file == "e.zip/user.json"
    assert "none of the known formats" in issue.reason
    alone = Source.of_bytes(packed(user_json=b'{"email": "a@b.c"}'), "e.zip")
    with pytest.raises(DataError, match=r"user\.json.*none of the known formats"):
        import_files(database, [SourceFile(ImportFile(name="e.zip"), alone)])


def test_an_exported_data_set_comes_back_as_it_was() -> None:
    stream = io.BytesIO()
    write_to([scored_talk(("a", 0.5), rater="ann")], "datasets", stream)
    (member,) = zip_files(Source.of_bytes(stream.getvalue()))
    (item,) = read(member)
    assert isinstance(item, Parsed)
    assert item.conversation.messages[1].scores[0].rater == "ann"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed(a_txt=b"x"), "none of its 1 files is JSON"),
        (packed(**{"[Content~Types]_xml": b"x", "a_json": b"[]"}), "a spreadsheet"),
        (packed(**{f"{n}_json": b"[]" for n in range(201)}), "more than 200 files"),
        (packed(a_json=lines(ROW))[:-30], "damaged"),
        (b"PK\x03\x04 nothing", "damaged"),
        (packed(), "none of its 0 files"),
        (
            packed(a_json=lines(ROW), b_json=lines(ROW)).replace(b"b.json", b"a.json"),
            "the same name",
        ),
    ],
)
def test_an_archive_that_cannot_be_imported_says_why(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        zip_files(Source.of_bytes(data))


def test_a_locked_archive_and_a_damaged_member_say_why() -> None:
    data = bytearray(packed(a_json=lines(ROW)))
    damaged = data.copy()
    damaged[35 + len("a.json")] ^= 0xFF
    (member,) = zip_files(Source.of_bytes(bytes(damaged)))
    with pytest.raises(DataError, match="damaged"):
        list(read(member))
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DataError, match="password"):
        zip_files(Source.of_bytes(bytes(data)))


def test_bombs_are_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "HARMLESS_BYTES", 4 * 2**20)
    zeros = b" " * (8 * 2**20)
    with pytest.raises(DataError, match="200 times"):
        zip_files(Source.of_bytes(packed(a_json=zeros)))
    row = lines({"messages": [{"role": "user", "content": "x" * 2**20}]})
    inner = gzip.compress(row * 16, compresslevel=9)
    (member,) = zip_files(Source.of_bytes(packed(a_jsonl_gz=gzip.compress(inner), b_txt=b"")))
    (member,) = zip_files(Source.of_bytes(packed(a_jsonl_gz=inner)))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="200 times"):
            for item in read(member):
                del item
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**20
    finally:
        tracemalloc.stop()


def test_a_parquet_bomb_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "HARMLESS_BYTES", 4 * 2**20)
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), ["x" * 2**13])
    stream = io.BytesIO()
    pq.write_table(pa.table({"prompt": text}), stream)
    bomb = Source.of_bytes(stream.getvalue())
    assert bomb.size_bytes * 200 < 4000 * 2**13
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="200 times"):
            for item in read(bomb, format="alpaca"):
                assert not isinstance(item, Parsed)
        assert tracemalloc.get_traced_memory()[1] < 24 * 2**20
    finally:
        tracemalloc.stop()
