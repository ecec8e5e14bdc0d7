"""A whole project in one file: the database, and what its runs left behind."""

import hashlib
import json
import sqlite3
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from sqlalchemy import delete

from db.backup import backup
from db.copying import copy_rows
from db.engine import Database, open_database
from db.errors import StorageError
from db.models import SessionTable, SignInFailureTable
from db.settings import Settings
from db.targets import refuse_database, replacing

MANIFEST = "manifest.json"
DATABASE = "everyturn.db"
VERSION = 1

KEPT_SUFFIXES = frozenset(
    {".json", ".jsonl", ".log", ".safetensors", ".md", ".txt", ".jinja", ".model"}
)
"""What runs' folders hold that an archive takes along; nothing in it can carry code."""

_LEFT_OUT = "checkpoints"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What an archive holds.

    Attributes:
        runs: How many runs' folders.
        files: How many files, the database included.
        size_bytes: The archive's size.
    """

    runs: int
    files: int
    size_bytes: int


def write_archive(db: Database, target: Path) -> Archived:
    """Write the database and the runs' folders into one zip file, which appears complete or not.

    The database is copied at one moment, while others go on writing. Checkpoints stay behind:
    they are large, and only a run that is resumed needs them. So do models, people's passwords
    and who is signed in.

    Args:
        db: The database.
        target: The archive; an older one there is replaced.

    Raises:
        SettingsError: if `target` is the database itself.
        StorageError: if something cannot be read or written.
    """
    refuse_database(db, target)
    try:
        with replacing(target) as unfinished, tempfile.TemporaryDirectory() as work:
            copy = _copy_of_database(db, Path(work) / DATABASE)
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                written = _Writer(archive)
                written.add(copy, DATABASE)
                for run in _run_folders(db.settings):
                    for file in _files_of_run(run):
                        written.add(file, f"runs/{run.name}/{file.relative_to(run).as_posix()}")
                written.finish()
            runs = {PurePosixPath(name).parts[1] for name in written.files if "/" in name}
            return Archived(
                runs=len(runs),
                files=len(written.files),
                size_bytes=unfinished.stat().st_size,
            )
    except (OSError, sqlite3.Error) as error:
        raise StorageError(
            f"the archive cannot be written ({error})",
            where=str(target),
            remedy="Check that the folder exists, can be written and has space.",
        ) from error


class _Writer:
    """Adds files to a zip and remembers their hashes for the manifest."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.files: dict[str, dict[str, str | int]] = {}

    def add(self, file: Path, name: str) -> None:
        """Add a file; hash and size are those of what was written, even if it grows meanwhile."""
        digest = hashlib.sha256()
        size_bytes = 0
        with file.open("rb") as source, self._archive.open(name, "w", force_zip64=True) as sink:
            while block := source.read(_READ_BYTES):
                digest.update(block)
                size_bytes += len(block)
                sink.write(block)
        self.files[name] = {"sha256": digest.hexdigest(), "size_bytes": size_bytes}

    def finish(self) -> None:
        """Write the manifest."""
        manifest = {
            "everyturn_archive": VERSION,
            "created_at": datetime.now(UTC).isoformat(),
            "files": self.files,
        }
        self._archive.writestr(MANIFEST, json.dumps(manifest, indent=1))


def _copy_of_database(db: Database, file: Path) -> Path:
    settings = Settings(home=file.parent, database_url=f"sqlite:///{file}")
    if db.sqlite_file is not None:
        backup(db, file)
    copy = open_database(settings)
    try:
        if db.sqlite_file is None:
            copy_rows(db, copy)
        with copy.session() as session:
            for table in (SessionTable, SignInFailureTable):
                session.execute(delete(table))
    finally:
        copy.close()
    # Written anew into one file: nothing of the deleted rows stays in it, nor a log beside it.
    flat = file.with_name("flat.db")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM INTO ?", (str(flat),))
    return flat


def _run_folders(settings: Settings) -> list[Path]:
    if not settings.runs_dir.is_dir():
        return []
    folders = [path for path in settings.runs_dir.iterdir() if path.name.isascii()]
    runs = [p for p in folders if p.name.isdigit() and p.is_dir() and not p.is_symlink()]
    return sorted(runs, key=lambda path: int(path.name))


def _files_of_run(run: Path) -> Iterator[Path]:
    for path in sorted(run.rglob("*")):
        inner = path.relative_to(run)
        hidden = any(part.startswith(".") for part in inner.parts)
        if hidden or inner.parts[0] == _LEFT_OUT or path.suffix not in KEPT_SUFFIXES:
            continue
        if stat.S_ISREG(path.lstat().st_mode):  # a link would carry along what lies elsewhere
            yield path
