"""Files that commands write: never the live database, and there complete or not at all."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from db.engine import Database
from db.errors import SettingsError


def refuse_database(db: Database, target: Path) -> None:
    """Refuse to write over the database itself, or over SQLite's files beside it.

    Raises:
        SettingsError: if `target` is one of them, whatever name leads to it.
    """
    if db.sqlite_file is None:
        return
    source = db.sqlite_file.resolve()
    live = (source, *(Path(f"{source}{end}") for end in ("-wal", "-shm")))
    if target.resolve() in live or any(_is_same_file(target, file) for file in live):
        raise SettingsError(
            "the target is the database itself", where=str(target), remedy="Name another file."
        )


@contextmanager
def replacing(target: Path) -> Generator[Path]:
    """Yield the path of an empty file beside `target`, which takes its place if all goes well.

    If the block fails, the unfinished file is removed and an older `target` stays as it was. A
    link keeps pointing where it points: the file at its end is replaced. What is no regular file
    (a pipe, a device) cannot be replaced, so its own path is yielded.

    Raises:
        OSError: if the folder cannot be written.
    """
    target = target.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target
        return
    unfinished = target.with_name(f".everyturn-{uuid4().hex}")
    unfinished.touch(exist_ok=False)
    try:
        if target.is_file():
            shutil.copymode(target, unfinished)
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _is_same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
