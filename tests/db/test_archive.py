"""A project in one file: everything opens elsewhere, and nothing dangerous ever does."""

import hashlib
import json
import pickle
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from db import commands, queries
from db.archive import MANIFEST, write_archive
from db.backup import backup
from db.engine import Database, open_database
from db.enums import RunStatus, UserRole
from db.errors import ConflictError, DataError, EveryTurnError, SettingsError, StorageError
from db.records import Conversation, ConversationFilter, Score
from db.restoring import Restored, restore
from db.settings import Settings
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import queued_run, scored_talk

RUN_FILES = {
    "config.json": b"{}",
    "metrics.jsonl": b'{"epoch": 0}\n',
    "summary.json": b"{}",
    "run.log": b"done\n",
    "adapter/adapter_model.safetensors": (0x0580).to_bytes(8, "little") + b'{"a": 1}',
    "adapter/chat_template.jinja": b"{{ messages }}",
}
LEFT_BEHIND = {
    "checkpoints/3/optimizer.safetensors": b"large",
    "adapter/optimizer.pt": b"code?",
    ".metrics.jsonl.tmp": b"half",
}


@pytest.fixture
def project(database: Database) -> Database:
    """A database with a scored conversation and a run that has left files."""
    talk = scored_talk(("a", 0.5), ("b", None), rater="ann")
    commands.add_conversation(
        database,
        Conversation(
            messages=talk.messages,
            title="t",
            tags=("x",),
            group="g",
            outcomes=(Score(rater="bob", value=-1.0, note="n"),),
        ),
    )
    folder = database.settings.run_dir(queued_run(database).id)
    for name, content in (RUN_FILES | LEFT_BEHIND).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return database


@pytest.fixture
def elsewhere(tmp_path: Path) -> Settings:
    """Another machine's empty home."""
    home = tmp_path / "elsewhere"
    return Settings(home=home, database_url=f"sqlite:///{home / 'everyturn.db'}")


def everything(database: Database) -> list[Conversation]:
    ids = queries.conversation_ids(database, ConversationFilter(order="oldest"), user_id=1)
    return queries.conversations(database, ids)


@ON_EVERY_DATABASE
def test_an_archive_opens_elsewhere_with_all_it_held(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "project.zip"
    packed = write_archive(project, file)
    assert (packed.runs, packed.size_bytes) == (1, file.stat().st_size)
    assert restore(elsewhere, file) == Restored(conversations=1, runs=1)
    opened = open_database(elsewhere)
    assert everything(opened) == everything(project)
    run = queries.runs(opened)[0]
    folder = elsewhere.run_dir(run.id)
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}
    assert files == RUN_FILES
    assert run.status is RunStatus.STOPPED  # nothing starts by itself on the other machine
    kept = {path.name for path in elsewhere.home.iterdir()}
    assert kept - {"everyturn.db-wal", "everyturn.db-shm"} == {"everyturn.db", "runs"}
    commands.add_conversation(opened, scored_talk(("new", 1.0), rater="ann"))  # ids go on
    opened.close()


@pytest.mark.parametrize("backend", [pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_an_archive_opens_in_a_postgres_database(
    database: Database, tmp_path: Path, backend: str
) -> None:
    local = tmp_path / "local"
    source = open_database(Settings(home=local, database_url=f"sqlite:///{local / 'a.db'}"))
    for number in range(3):
        commands.add_conversation(source, scored_talk((f"a{number}", 0.5), rater="ann"))
    write_archive(source, tmp_path / "project.zip")
    assert restore(database.settings, tmp_path / "project.zip").conversations == 3
    assert everything(database) == everything(source)
    assert commands.add_conversation(database, scored_talk(("next", 0.5), rater="ann")) == 4
    source.close()


def test_a_backup_is_opened_like_an_archive(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    backup(project, tmp_path / "copy.db")
    assert restore(elsewhere, tmp_path / "copy.db") == Restored(conversations=1, runs=1)
    opened = open_database(elsewhere)
    assert everything(opened) == everything(project)
    opened.close()


def test_a_project_is_not_mixed_with_another(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    write_archive(project, tmp_path / "project.zip")
    with pytest.raises(ConflictError, match="a project here already"):
        restore(project.settings, tmp_path / "project.zip")
    restore(elsewhere, tmp_path / "project.zip")
    with pytest.raises(ConflictError, match="a project here already"):
        restore(elsewhere, tmp_path / "project.zip")


def test_who_is_signed_in_stays_behind(project: Database, tmp_path: Path) -> None:
    with project.session() as session:
        session.connection().exec_driver_sql(
            "INSERT INTO sessions (token_sha256, user_id, created_at, expires_at)"
            " VALUES ('5ec7e7', 1, '2026-01-01 00:00:00.000000', '2036-01-01 00:00:00.000000')"
        )
    write_archive(project, tmp_path / "project.zip")
    with zipfile.ZipFile(tmp_path / "project.zip") as archive:
        assert b"5ec7e7" not in archive.read("everyturn.db")


def test_whoever_made_a_file_lets_nobody_in_where_it_is_opened(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    commands.admit_person(project, "mallory@example.com", role=UserRole.ADMIN, password=None)
    file = tmp_path / "copy.db"
    backup(project, file)
    restore(elsewhere, file)
    opened = open_database(elsewhere)
    assert queries.admitted_user(opened, "mallory@example.com") is None
    assert not any(person.may_sign_in for person in queries.people(opened))
    opened.close()


def test_an_archive_never_replaces_the_database(project: Database) -> None:
    with pytest.raises(SettingsError, match="the database itself"):
        write_archive(project, project.settings.home / "everyturn.db")
    with pytest.raises(StorageError, match="cannot be written"):
        write_archive(project, project.settings.home / "nowhere" / "x.zip")


Change = Callable[[dict[str, bytes]], None]


def forged(project: Database, tmp_path: Path, change: Change, *, honest: bool = True) -> Path:
    """Write an archive whose files were changed; an honest manifest is made to fit them."""
    whole, file = tmp_path / "whole.zip", tmp_path / "forged.zip"
    write_archive(project, whole)
    with zipfile.ZipFile(whole) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop(MANIFEST))
    change(files)
    if honest:
        manifest["files"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
            for name, data in files.items()
        }
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in (files | {MANIFEST: json.dumps(manifest).encode()}).items():
            archive.writestr(name, data)
    return file


@pytest.mark.parametrize(
    "name",
    [
        "../outside.json",
        "runs/../../outside.json",
        "runs/1/../../../outside.json",
        "/tmp/outside.json",
        "runs/1/..\\\\outside.json",
        "C:/outside.json",
        "runs/1/adapter/.hidden.json",
        "runs/one/x.json",
        "runs/1/a/b/c/d/e/f/g/h.json",
        "passwords.json",
        "runs/1/adapter/model.pkl",
        "runs/1/adapter/pytorch_model.bin",
        "runs/1/adapter/training_args.pt",
        "runs/1/adapter/setup.py",
        "runs/1/\u202egnp.json",
    ],
)
def test_names_that_lead_elsewhere_or_can_carry_code_are_refused(
    project: Database, elsewhere: Settings, tmp_path: Path, name: str
) -> None:
    def add(files: dict[str, bytes]) -> None:
        files[name] = b"{}"

    with pytest.raises(DataError, match="no project archive holds"):
        restore(elsewhere, forged(project, tmp_path, add))
    assert not (tmp_path / "outside.json").exists()
    assert list(elsewhere.home.iterdir()) == []


def test_a_pickle_under_a_harmless_name_is_refused(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    def add(files: dict[str, bytes]) -> None:
        files["runs/1/adapter/weights.safetensors"] = pickle.dumps({"a": 1})

    with pytest.raises(DataError, match="a pickle"):
        restore(elsewhere, forged(project, tmp_path, add))


def test_a_link_is_refused(project: Database, elsewhere: Settings, tmp_path: Path) -> None:
    file = forged(project, tmp_path, lambda files: files.update({"runs/1/run.log": b"/etc/passwd"}))
    linked = tmp_path / "linked.zip"
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(linked, "w") as out:
        for entry in archive.infolist():
            data = archive.read(entry)
            if entry.filename == "runs/1/run.log":
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            out.writestr(entry, data)
    with pytest.raises(DataError, match="a link"):
        restore(elsewhere, linked)


def test_changed_and_damaged_archives_are_refused(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["runs/1/config.json"] = b"[]"

    def lengthen(files: dict[str, bytes]) -> None:
        files["runs/1/config.json"] = b" " * 10_000_000

    for tamper in (change, lengthen):
        with pytest.raises(DataError, match="damaged or was changed"):
            restore(elsewhere, forged(project, tmp_path, tamper, honest=False))
    whole = (tmp_path / "whole.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.zip").write_text("hello")
    for name in ("cut.zip", "text.zip"):
        with pytest.raises(EveryTurnError):
            restore(elsewhere, tmp_path / name)
    with pytest.raises(StorageError):
        restore(elsewhere, tmp_path / "missing.zip")


def test_a_database_with_a_trigger_is_refused(
    project: Database, elsewhere: Settings, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    backup(project, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(
            "CREATE TRIGGER evil AFTER INSERT ON scores BEGIN DELETE FROM scores; END"
        )
    with pytest.raises(DataError, match="not EveryTurn's"):
        restore(elsewhere, copy)


def test_a_link_in_a_run_folder_takes_nothing_along(project: Database, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("secret")
    (project.settings.run_dir(1) / "linked.json").symlink_to(secret)
    (project.settings.runs_dir / "9").symlink_to(tmp_path)
    write_archive(project, tmp_path / "project.zip")
    with zipfile.ZipFile(tmp_path / "project.zip") as archive:
        assert not [name for name in archive.namelist() if "linked" in name or "runs/9" in name]
