"""A consistent copy of the database while others go on writing."""

import sqlite3
from contextlib import closing
from pathlib import Path

from db.engine import BUSY_TIMEOUT_S, Database
from db.errors import SettingsError, StorageError
from db.targets import refuse_database, replacing


def backup(db: Database, target: Path) -> int:
    """Copy the database into one file, which appears complete or not at all.

    Args:
        db: The database.
        target: The copy; an older one there is replaced.

    Returns:
        The size of the copy in bytes.

    Raises:
        SettingsError: if the database is not SQLite, or `target` is the database itself.
        StorageError: if the copy cannot be written.
    """
    source = db.sqlite_file
    if source is None:
        raise SettingsError(
            "only SQLite databases are copied by EveryTurn",
            where="backup",
            remedy="Use PostgreSQL's own program: pg_dump --format=custom --file=FILE ADDRESS "
            "(docs/data.md), or `python -m db archive FILE`, which copies it row by row.",
        )
    refuse_database(db, target)
    try:
        return _copy(source, target)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(
            f"the backup cannot be written ({error})",
            where=str(target),
            remedy="Check that the folder exists, can be written and has space.",
        ) from error


def _copy(source: Path, target: Path) -> int:
    with replacing(target) as unfinished:
        with (
            closing(sqlite3.connect(source, timeout=BUSY_TIMEOUT_S)) as original,
            closing(sqlite3.connect(unfinished)) as copy,
        ):
            original.backup(copy)  # in one step: a single moment of the database
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        return unfinished.stat().st_size
