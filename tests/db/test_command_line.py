"""`python -m db`: exit codes, one readable line for each failure, never a traceback."""

import errno
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from db import commands, queries
from db.__main__ import main
from db.backup import backup
from db.engine import Database, open_database
from db.errors import SettingsError, StorageError
from db.settings import Settings
from tests.db.building import scored_talk, talk

SEED = json.dumps([{"turns": [{"user": "a", "assistant": "b", "reward": 1}]}])


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "db", *arguments], capture_output=True, timeout=120, check=False
    )


def test_from_nothing_to_an_export_and_back(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    file.write_text(SEED)
    assert run("upgrade").returncode == 0
    imported = run("import", str(file), "--json")
    assert (imported.returncode, imported.stderr) == (0, b"")
    assert json.loads(imported.stdout) == {
        "format": "recipe",
        "conversations": 1,
        "messages": 2,
        "scores": 1,
        "duplicates": 0,
        "skipped": [],
        "issues": [],
        "warnings": [],
    }
    exported = run("export", "-", "--format", "native")
    assert exported.returncode == 0
    (tmp_path / "native.jsonl").write_bytes(exported.stdout)
    again = json.loads(run("import", str(tmp_path / "native.jsonl"), "--json").stdout)
    assert (again["format"], again["conversations"], again["duplicates"]) == ("native", 0, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["import", "missing.json"], 1, "missing.json: the file cannot be read"),
        (["import", "."], 1, "cannot be read"),
        (["import", "bad.json"], 1, "bad.json, line 2, column 2: the JSON is malformed"),
        (["import", "alien.jsonl"], 1, "alien.jsonl, row 1, messages[0].role: none of the file's"),
        (["import", "seed.json", "--format", "xml"], 2, "invalid choice"),
        (["import"], 2, "required"),
        ([], 2, "required"),
        (["export", "-", "--format", "recipe"], 2, "invalid choice"),
        (["export", "nowhere/x.jsonl", "--format", "native"], 1, "cannot be written"),
        (["backup", "nowhere/x.db"], 1, "cannot be written"),
        (["export", "home", "--format", "native"], 1, "cannot be written"),
        (["backup", "home/everyturn.db"], 1, "the target is the database itself"),
        (["export", "home/everyturn.db", "--format", "native"], 1, "is the database itself"),
        (["export", "home/everyturn.db-wal", "--format", "openai"], 1, "is the database itself"),
    ],
)
def test_failures_are_explained_in_one_line(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seed.json").write_text(SEED)
    Path("bad.json").write_text(f"{SEED[:-1]},\n{{oops}}]")
    Path("alien.jsonl").write_text('{"messages": [{"role": "alien", "content": "x"}]}')
    if code == 2:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
    else:
        assert main(arguments) == code
    errors = capsys.readouterr().err
    assert words in errors
    if code == 1:
        assert errors.startswith("error: ") and errors.count("\n") == 1


def test_packed_tables_come_in_by_path_and_files_together(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([{"prompt": "a", "answer": "b", "reward": 0.5}]), table)
    parquet, csv = tmp_path / "one.parquet.gz", tmp_path / "two.csv.gz"
    parquet.write_bytes(gzip.compress(table.getvalue().to_pybytes()))
    csv.write_bytes(gzip.compress(b"prompt,answer,reward\na,b,0.5\nc,d,\n"))
    assert main(["import", str(parquet), str(csv), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["conversations"]) == ("csv", 2)
    assert (report["scores"], report["duplicates"]) == (1, 1)
    assert sorted(queries.all_sources(open_database(settings))) == [
        "import:one.parquet.gz", "import:two.csv.gz"
    ]  # fmt: skip


def test_a_dry_run_in_words(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.json"
    rows = [*json.loads(SEED), {"turns": [{"user": "x", "assistant": "y", "reward": 9}]}]
    file.write_text(json.dumps(rows))
    assert main(["import", str(file), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "would import as recipe: conversations 1, messages 2, scores 1, already there 0, "
        "rows skipped 1"
    )
    assert lines[1].startswith("skipped row 2, turns[0].reward: 9 is outside")
    assert queries.overview(open_database(settings)).conversations == 0


def test_an_export_holds_archived_conversations_too(database: Database, tmp_path: Path) -> None:
    ids, _ = commands.add_conversations(database, [talk("a", "b"), talk("c", "d")])
    commands.set_archived(database, ids[:1], True)
    target = tmp_path / "all.jsonl"
    assert main(["export", str(target), "--format", "openai"]) == 0
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["messages"][0]["content"] for row in rows] == ["a", "c"]


def test_an_empty_answer_says_so_beside_it(
    database: Database, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    commands.add_conversations(database, [talk("a", "b")])
    for arguments, words in (
        (["export", "-", "--format", "openai", "--rater", "kim"], b"no conversation passes"),
        (["imports"], b"nothing was imported"),
    ):
        assert main(arguments) == 0
        output = capfdbinary.readouterr()
        assert output.out == b""
        assert words in output.err


def test_no_name_of_the_database_lets_an_export_write_over_it(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = database.settings.home / "everyturn.db"
    (tmp_path / "link.jsonl").symlink_to(source)
    (tmp_path / "twin.jsonl").hardlink_to(source)
    before = source.read_bytes()
    for name in ("link.jsonl", "twin.jsonl"):
        assert main(["export", str(tmp_path / name), "--format", "native"]) == 1
        assert "is the database itself" in capsys.readouterr().err
    assert source.read_bytes() == before


def test_a_failed_export_leaves_the_old_file_and_nothing_else(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "all.jsonl"
    target.write_text("old")
    target.chmod(0o640)
    full = OSError(errno.ENOSPC, "No space left on device")

    def write_half(_db: Database, _ids: list[int], _format: str, stream: BinaryIO) -> int:
        stream.write(b"half")
        raise full

    with monkeypatch.context() as patched:
        patched.setattr("db.export_command.export", write_half)
        assert main(["export", str(target), "--format", "native"]) == 1
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.jsonl", "home"]
    commands.add_conversation(database, talk("a", "b"))
    assert main(["export", str(target), "--format", "native"]) == 0
    assert json.loads(target.read_text())["messages"][0]["content"] == "a"
    assert target.stat().st_mode & 0o777 == 0o640


def test_an_export_goes_into_a_pipe_and_through_a_link(database: Database, tmp_path: Path) -> None:
    commands.add_conversation(database, talk("a", "b"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(pipe.read_text)
        assert main(["export", str(pipe), "--format", "openai"]) == 0
        assert "messages" in reading.result(timeout=30)
    assert pipe.is_fifo()
    (tmp_path / "link").symlink_to(tmp_path / "real.jsonl")
    assert main(["export", str(tmp_path / "link"), "--format", "openai"]) == 0
    assert (tmp_path / "link").is_symlink()
    assert "messages" in (tmp_path / "real.jsonl").read_text()


def test_a_backup_taken_while_others_write_is_whole(
    database: Database, user_id: int, tmp_path: Path
) -> None:
    """Each score is written together with its log entry; a torn copy would hold one alone."""
    id = commands.add_conversation(database, scored_talk(*((f"r{i}", None) for i in range(40))))
    message_ids = [m.id for m in queries.conversation(database, id).assistant_messages]
    stop = Event()

    def write() -> int:
        changes = 0
        while not stop.is_set():
            message_id = message_ids[changes % len(message_ids)]
            assert message_id is not None
            commands.set_score(
                database, user_id=user_id, message_id=message_id, value=(changes % 100) / 100
            )
            changes += 1
        return changes

    target = tmp_path / "copy.db"
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(5):
                assert backup(database, target) == target.stat().st_size
                assert_whole(target)
        finally:
            stop.set()
        assert writing.result() > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]
    copy = open_database(Settings(home=tmp_path, database_url=f"sqlite:///{target}"))
    assert queries.conversation(copy, id).messages[0].content == "ask for r0"


def assert_whole(target: Path) -> None:
    connection = sqlite3.connect(target)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    differing = connection.execute(
        "SELECT count(*) FROM scores JOIN events ON events.id ="
        " (SELECT max(id) FROM events AS e WHERE e.message_id = scores.message_id)"
        " WHERE events.new_value <> scores.value"
    ).fetchone()
    logged = connection.execute("SELECT count(DISTINCT message_id) FROM events").fetchone()
    stored = connection.execute("SELECT count(*) FROM scores").fetchone()
    connection.close()
    assert (differing, logged) == ((0,), stored)


def test_only_sqlite_is_backed_up(database: Database, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="itself"):
        backup(database, database.settings.home / "everyturn.db-wal")
    with pytest.raises(StorageError):
        backup(database, tmp_path / "nowhere" / "x.db")
