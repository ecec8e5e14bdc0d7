"""Files into the database: read to the end first, then all of it stored, or none, in one transaction."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sqlalchemy.orm import Session

from db.commands.adding import AddedConversations, add_in
from db.commands.imports import insert_done_import, settle_import
from db.commands.rehearsing import Rehearsal
from db.engine import Database
from db.formats import ScoreRule, Source
from db.import_reading import Progress, SourceFile, StagedImport, disk_errors, parts, stage
from db.import_report import Reading, Tally
from db.records import ImportFile, ImportReport
from db.staging import staged


def import_bytes(
    db: Database,
    data: bytes,
    *,
    format: str = "auto",
    rule: ScoreRule | None = None,
    source: str,
    dry_run: bool = False,
) -> ImportReport:
    """Import what is in memory as one file (see `import_files`).

    Args:
        db: The database.
        data: The file's bytes.
        format: One of `db.formats.READABLE`, or "auto".
        rule: How scores are read; None takes the suggested rule.
        source: Where the conversations come from, for those that do not say so themselves.
        dry_run: Only say what would happen.
    """
    name = source.removeprefix("import:")
    file = ImportFile(name=name, format=format, rule=None if rule is None else rule.to_json())
    chosen = [SourceFile(file, Source.of_bytes(data, name))]
    return import_files(db, chosen, source=source, dry_run=dry_run)


def import_files(
    db: Database,
    files: Sequence[SourceFile],
    *,
    source: str | None = None,
    dry_run: bool = False,
    user_id: int | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import the conversations of files: all rows that can be read, or (on an error) none.

    Conversations whose words are already in the database are left out as duplicates, so that
    importing a file twice adds nothing; scores that they bring by raters who have not scored
    the turn yet are merged. Raters become users by name. The import can be undone as a whole.

    Args:
        db: The database.
        files: The files, in this order.
        source: Where the conversations come from, for those that do not say so themselves;
            "import:" and the file's name if None.
        dry_run: Only say what would happen; nothing is written, nobody has to wait.
        user_id: Who imports.
        progress: Is told how far it is.

    Raises:
        DataError: if a file cannot be read at all (see `db.formats.read`).
        StorageError: if the database cannot be written.
    """
    with disk_errors(), tempfile.TemporaryDirectory(prefix="everyturn-import-") as work:
        files = [part for chosen in files for part in parts(chosen)]
        found = stage(files, Path(work) / "staged", source=source, progress=progress)
        if dry_run:
            return rehearse(db, found)
        names = [chosen.file for chosen in files]

        def begin(session: Session) -> int:
            return insert_done_import(session, names, user_id=user_id)

        return _store(db, found.path, found.reading, begin, progress)


def rehearse(db: Database, found: StagedImport) -> ImportReport:
    """Return the report that storing it would give; reads only."""
    with db.read_session() as session:
        rehearsal = Rehearsal(session, found.repeated)
        return _added(map(rehearsal.add, staged(found.path))).report(found.reading)


def store(
    db: Database, import_id: int, path: Path, reading: Reading, progress: Progress | None = None
) -> ImportReport:
    """Store what was staged, and mark the import as done in the same transaction.

    Args:
        db: The database.
        import_id: The import; it must be under way.
        path: The staging file.
        reading: What `stage` had to tell.
        progress: Is told how far it is.

    Raises:
        ConflictError: if the import has been cancelled meanwhile; then nothing is stored.
        StorageError: if the database or the staging file cannot be used.
    """
    with disk_errors():
        return _store(db, path, reading, lambda _: import_id, progress)


def _store(
    db: Database,
    path: Path,
    reading: Reading,
    begin: Callable[[Session], int],
    progress: Progress | None,
) -> ImportReport:
    if progress is not None:
        progress(1.0, "Storing, in one step")  # later this process could not say it: it writes
    with db.session() as session:
        import_id = begin(session)
        added = (add_in(session, chunk, import_id=import_id) for chunk in staged(path))
        report = _added(added).report(reading)
        settle_import(session, import_id, report.to_json())
    return report


def _added(parts: Iterable[AddedConversations]) -> Tally:
    tally = Tally()
    for part in parts:
        tally.count(part)
    return tally
