"""Imports as processes of their own: started, followed, cancelled, and cleared up after."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from db import commands, queries
from db.engine import Database
from db.enums import ImportState
from db.errors import StorageError
from db.import_job import import_folder
from db.records import HubSet, ImportFile
from trainer.detached import start_detached
from trainer.runs.process import Mark, Sign, end, own_machine

KEPT = timedelta(days=1)
"""How long files that nobody imports are kept."""

START_GRACE = timedelta(seconds=30)
"""How long it may take until a process that was started is known."""

_DIED = (
    "The process that did it ended without a word, most often because the machine's memory ran "
    "out or somebody ended it. Nothing was stored."
)
_UNDER_WAY = (ImportState.CHECKING, ImportState.IMPORTING)


class Upload(Protocol):
    """A file that came through the browser."""

    name: str

    def getbuffer(self) -> memoryview:
        """Return its bytes."""
        ...


def receive(db: Database, uploads: Sequence[Upload], *, user_id: int) -> int:
    """Keep uploaded files and have them checked; return the import's id.

    Raises:
        StorageError: if they cannot be kept.
    """
    files = [ImportFile(name=upload.name) for upload in uploads]
    return _begin(db, files, [upload.getbuffer() for upload in uploads], user_id)


def _begin(
    db: Database, files: Sequence[ImportFile], contents: Sequence[memoryview], user_id: int
) -> int:
    clear_up(db)
    import_id = commands.create_import(db, files, user_id=user_id)
    folder = import_folder(db.settings, import_id)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, content in enumerate(contents):
            (folder / str(index)).write_bytes(content)
        _spawn(db, import_id)
    except OSError as error:
        commands.cancel_import(db, import_id)
        discard(db, import_id)
        raise StorageError(
            f"the files cannot be kept ({error.strerror})",
            where=str(folder),
            remedy="Make room on that disk, then choose the files again.",
        ) from error
    return import_id


def fetch(db: Database, wanted: HubSet, *, user_id: int) -> int:
    """Fetch a data set of the hub and have it checked; return the import's id.

    Raises:
        StorageError: if its folder cannot be made.
    """
    return _begin(db, [ImportFile(name=wanted.name, hub=wanted)], [], user_id)


def check_again(db: Database, import_id: int, files: Sequence[ImportFile]) -> None:
    """Check the same files, read in another way.

    Raises:
        NotFoundError, ConflictError: as `commands.check_import`.
    """
    if commands.check_import(db, import_id, files):
        _spawn(db, import_id)


def begin_import(db: Database, import_id: int) -> None:
    """Store what the check found.

    Raises:
        NotFoundError, ConflictError: as `commands.start_import`.
    """
    if commands.start_import(db, import_id):
        _spawn(db, import_id)


def cancel(db: Database, import_id: int) -> None:
    """End a check or an import; as it stores all or nothing, its process is simply killed."""
    job = queries.import_(db, import_id)
    if job.state.has_process and job.process:
        mark = Mark.from_text(job.process)
        if mark.machine == own_machine():
            end(mark.pid, mark.started_at, force=True)
    commands.cancel_import(db, import_id)


def discard(db: Database, import_id: int) -> None:
    """Forget an import of which nothing was stored, and its files.

    Raises:
        NotFoundError, ConflictError: as `commands.discard_import`.
    """
    commands.discard_import(db, import_id)
    shutil.rmtree(import_folder(db.settings, import_id), ignore_errors=True)


def reconcile_imports(db: Database) -> None:
    """End imports whose process is gone."""
    for job in queries.imports(db, *_UNDER_WAY):
        if job.process:
            is_gone = Mark.from_text(job.process).sign() in (Sign.GONE, Sign.RESTARTED)
        else:
            is_gone = datetime.now(UTC) - job.changed_at > START_GRACE
        if is_gone:
            commands.fail_import(db, job.id, _DIED)


def clear_up(db: Database) -> None:
    """Forget imports that were never made, once they are old."""
    reconcile_imports(db)
    old = datetime.now(UTC) - KEPT
    for job in queries.imports(db, ImportState.CHECKED, ImportState.FAILED, ImportState.CANCELLED):
        if job.changed_at < old:
            discard(db, job.id)


def _spawn(db: Database, import_id: int) -> None:
    log = import_folder(db.settings, import_id) / "job.log"
    mark = start_detached(db.settings, ["db", "import-job", str(import_id)], log)
    if mark is not None:
        commands.record_import_process(db, import_id, str(mark))
