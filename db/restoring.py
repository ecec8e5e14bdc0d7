"""Opening a project archive or a backup on this machine: checked first, then put in place."""

import hashlib
import json
import shutil
import sqlite3
import stat
import tempfile
import zipfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, cast

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from db.archive import DATABASE, KEPT_SUFFIXES, MANIFEST, VERSION
from db.copying import copy_rows
from db.engine import Database, open_database
from db.enums import CollectionState, ImportState, RunStatus
from db.errors import ConflictError, DataError, SettingsError, StorageError
from db.models import (
    CollectionTable,
    ConversationTable,
    ImportTable,
    RunTable,
    SessionTable,
    UserTable,
)
from db.settings import Settings

_SQLITE_MARK = b"SQLite format 3\x00"
_ZIP_MARK = b"PK\x03\x04"
_READ_BYTES = 1 << 20
_LARGEST_MANIFEST = 64 << 20
_DEEPEST = 8
_UNDER_WAY = [status for status in RunStatus if not status.has_ended]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was put in place."""

    conversations: int
    runs: int


def restore(settings: Settings, file: Path) -> Restored:
    """Put the content of a project archive, or of a backup, into a home that holds nothing yet.

    Everything is checked before anything is put in place: names that lead elsewhere, links, kinds
    of files that an archive does not hold (pickles above all), hashes, and the database itself.
    Runs and imports that were under way when it was made are marked as stopped. Nobody may sign in
    until they are let in here.

    Args:
        settings: Where to put it; DATABASE_URL may name PostgreSQL.
        file: What `write_archive` or `backup` wrote.

    Raises:
        DataError: if the file is neither, is damaged, or holds what it must not.
        ConflictError: if there is a project here already.
        SettingsError: if a newer version wrote it, or the home cannot be used.
        StorageError: if there is no space, or the database cannot be written.
    """
    _refuse_project(settings)
    settings.home.mkdir(parents=True, exist_ok=True)
    with _os_errors(file), tempfile.TemporaryDirectory(dir=settings.home, prefix=".restore-") as at:
        work = Path(at)
        _unpack(file, work)
        source = open_database(
            Settings(home=work, database_url=f"sqlite:///{_checked(work / DATABASE)}")
        )
        try:
            with source.session() as session:
                _end_what_was_under_way(session)
                _let_nobody_in(session)
            restored = _counts(source)
            _put_in_place(settings, work, source)
        finally:
            source.close()
    return restored


def _refuse_project(settings: Settings) -> None:
    taken = [path for path in (settings.runs_dir,) if path.is_dir() and any(path.iterdir())]
    database = Path(settings.database_url.removeprefix("sqlite:///"))
    if not settings.database_url.startswith("sqlite") or database.is_file():
        opened = open_database(settings)
        try:
            there = _counts(opened)
        finally:
            opened.close()
        if there.conversations or there.runs:
            taken.append(database if opened.sqlite_file else Path("DATABASE_URL"))
    if taken:
        raise ConflictError(
            "there is a project here already, and restoring would mix two",
            where=" and ".join(str(path) for path in taken),
            remedy="Point EVERYTURN_HOME (and DATABASE_URL) at an empty place, or move these away.",
        )


def _counts(database: Database) -> Restored:
    with database.read_session() as session:
        return Restored(
            conversations=session.scalar(select(func.count(ConversationTable.id))) or 0,
            runs=session.scalar(select(func.count(RunTable.id))) or 0,
        )


def _unpack(file: Path, work: Path) -> None:
    with file.open("rb") as opened:
        start = opened.read(len(_SQLITE_MARK))
    if start == _SQLITE_MARK:
        shutil.copyfile(file, work / DATABASE)
        return
    if not start.startswith(_ZIP_MARK):
        _refuse("this is neither a project archive nor a backup", str(file))
    try:
        with zipfile.ZipFile(file) as archive:
            files = _manifest(archive)
            _check_names(archive, files)
            _check_space(files, work)
            for name, facts in files.items():
                _extract(archive, name, facts, work / name)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        _refuse(f"the archive is damaged ({error})", str(file))


def _manifest(archive: zipfile.ZipFile) -> dict[str, dict[str, Any]]:
    if (
        MANIFEST not in archive.namelist()
        or archive.getinfo(MANIFEST).file_size > _LARGEST_MANIFEST
    ):
        _refuse("this zip file is no project archive", MANIFEST)
    try:
        manifest = json.loads(archive.read(MANIFEST))
        version, files = manifest["everyturn_archive"], manifest["files"]
        well_formed = all(
            isinstance(facts["sha256"], str) and isinstance(facts["size_bytes"], int)
            for facts in files.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        _refuse("its list of contents cannot be read", MANIFEST)
    if version != VERSION:
        raise SettingsError(
            f"the archive was written by another version of EveryTurn (form {version})",
            where=MANIFEST,
            remedy="Open it with that version.",
        )
    if not well_formed or DATABASE not in files:
        _refuse("its list of contents is incomplete", MANIFEST)
    return cast("dict[str, dict[str, Any]]", files)


def _check_names(archive: zipfile.ZipFile, files: dict[str, Any]) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if sorted(names) != sorted([*files, MANIFEST]):
        _refuse("it holds other files than its list of contents names", MANIFEST)
    if len({name.lower() for name in names}) < len(names):
        _refuse("two of its files have the same name", MANIFEST)
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            _refuse("it holds a link or a device", repr(entry.filename)[:120])
        if entry.filename not in (DATABASE, MANIFEST) and not _belongs_to_a_run(entry.filename):
            _refuse("it holds a file that no project archive holds", repr(entry.filename)[:120])


def _belongs_to_a_run(name: str) -> bool:
    """Return whether a name is runs/<number>/... with nothing in it that leads elsewhere."""
    parts = name.split("/")
    return (
        3 <= len(parts) <= _DEEPEST
        and parts[0] == "runs"
        and parts[1].isascii()
        and parts[1].isdigit()
        and all(part.strip(". ") and part.isprintable() for part in parts)
        and not set(name) & set('\\:*?"<>|')
        and not any(part.startswith(".") for part in parts)
        and PurePosixPath(name).suffix in KEPT_SUFFIXES
    )


def _check_space(files: dict[str, dict[str, Any]], work: Path) -> None:
    needed = sum(facts["size_bytes"] for facts in files.values())
    if needed > shutil.disk_usage(work).free:
        raise StorageError(
            f"unpacked it takes {needed / 1e9:.1f} GB, more than is free",
            where=str(work.parent),
            remedy="Make room, or choose another EVERYTURN_HOME.",
        )


def _extract(archive: zipfile.ZipFile, name: str, facts: dict[str, Any], target: Path) -> None:
    """Write one file; what is longer than announced, or differs, ends it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    left = facts["size_bytes"]
    with archive.open(name) as source, target.open("xb") as sink:
        while block := source.read(min(_READ_BYTES, left + 1)):
            left -= len(block)
            if left < 0:
                break
            digest.update(block)
            sink.write(block)
    if left != 0 or digest.hexdigest() != facts["sha256"]:
        _refuse("a file in it is damaged or was changed", name)
    with target.open("rb") as written:
        if _is_pickle(written.read(16)):
            _refuse("it holds a pickle, which could run code when it is read", name)


def _is_pickle(start: bytes) -> bool:
    """Return whether a file begins as pickles do, or as torch's zipped ones.

    A safetensors file may begin with the same two bytes: its first eight are a small number.
    """
    is_protocol = len(start) > 2 and start[0] == 0x80 and 2 <= start[1] <= 5
    return (is_protocol and start[2:8] != bytes(6)) or start.startswith(_ZIP_MARK)


def _checked(file: Path) -> Path:
    """Return the database file if it is whole and holds tables only: triggers would run code."""
    try:
        with closing(sqlite3.connect(file)) as connection:
            kinds = {str(kind) for (kind,) in connection.execute("SELECT type FROM sqlite_master")}
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.DatabaseError as error:
        _refuse(f"the database in it is damaged ({error})", DATABASE)
    if state != "ok" or not kinds <= {"table", "index"}:
        _refuse("the database in it is damaged, or is not EveryTurn's", DATABASE)
    return file


def _end_what_was_under_way(session: Session) -> None:
    """No process of another machine is here; and nothing starts by itself."""
    session.execute(
        update(RunTable)
        .where(RunTable.status.in_(_UNDER_WAY))
        .values(
            status=RunStatus.STOPPED,
            pid=None,
            process_started_at=None,
            machine="",
            claimed_by="",
            message="It was under way when the archive was made.",
        )
    )
    session.execute(
        update(ImportTable)
        .where(
            ImportTable.state.in_(
                (ImportState.CHECKING, ImportState.CHECKED, ImportState.IMPORTING)
            )
        )
        .values(state=ImportState.CANCELLED, process="")
    )
    session.execute(
        update(CollectionTable)
        .where(CollectionTable.state == CollectionState.COLLECTING)
        .values(state=CollectionState.CANCELLED, process="", message="")
    )


def _let_nobody_in(session: Session) -> None:
    """Who may sign in here is not for whoever made the file to say."""
    session.execute(update(UserTable).values(may_sign_in=False))
    session.execute(delete(SessionTable))


def _put_in_place(settings: Settings, work: Path, source: Database) -> None:
    runs = work / "runs"
    if runs.is_dir():
        settings.runs_dir.mkdir(exist_ok=True)
        for run in runs.iterdir():
            run.rename(settings.runs_dir / run.name)
    # The database comes last, and in one transaction: a home without it can be filled again.
    target = open_database(settings)
    try:
        copy_rows(source, target)
    finally:
        target.close()


@contextmanager
def _os_errors(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"it cannot be restored ({error.strerror or error})",
            where=str(file),
            remedy="Check the file's name and permissions, and that the disk has space.",
        ) from error


def _refuse(what: str, where: str) -> NoReturn:
    raise DataError(
        what, where=where, remedy="Nothing was restored. Use a file that `python -m db` wrote."
    )
