"""What the process of an import does: check files that lie in its folder, or store what it found."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from db import commands, queries
from db.engine import Database
from db.enums import ImportState
from db.errors import EveryTurnError
from db.formats import Source
from db.hub import fetch_rows
from db.import_reading import SourceFile, parts, patient, stage
from db.import_report import Reading
from db.importing import rehearse, store
from db.records import HubSet, Import, ImportFile
from db.settings import Settings

_STAGED = "staged"
_READING = "reading.json"


def import_folder(settings: Settings, import_id: int) -> Path:
    """Return the folder that holds an import's files while it is not done (it may not exist)."""
    return settings.imports_dir / str(import_id)


def source_of(settings: Settings, import_id: int, index: int, file: ImportFile) -> Source:
    """Return where the bytes of an import's file lie.

    They lie under a number: a name that somebody chose is never part of a path.

    Raises:
        DataError: if they are gone.
    """
    kept_as = index if file.kept_as is None else file.kept_as
    source = Source.of_path(import_folder(settings, import_id) / str(kept_as), file.name)
    return replace(source, member=file.member)


def run_import_job(db: Database, import_id: int) -> None:
    """Do what the import waits for; how it ends is told by its row, failures included.

    Raises:
        NotFoundError: if there is no such import.
    """
    job = queries.import_(db, import_id)
    try:
        if job.state is ImportState.CHECKING:
            _check(db, job)
        elif job.state is ImportState.IMPORTING:
            _store(db, job)
    except EveryTurnError as error:
        commands.fail_import(db, import_id, str(error))
    except Exception as error:  # the process ends here: nobody else could tell
        commands.fail_import(db, import_id, f"something unforeseen happened ({error!r:.200})")
        raise


def _check(db: Database, job: Import) -> None:
    folder = import_folder(db.settings, job.id)
    for index, file in enumerate(job.files):
        if file.hub is not None and not (folder / str(index)).exists():
            _fetch(db, job.id, file.hub, folder / str(index))
    files = [
        part
        for index, file in enumerate(job.files)
        for part in parts(SourceFile(file, source_of(db.settings, job.id, index, file)), index)
    ]
    commands.name_import_files(db, job.id, [part.file for part in files])

    def tell(share: float, message: str) -> None:
        commands.report_import_progress(db, job.id, share, message)

    found = stage(files, folder / _STAGED, progress=tell)
    (folder / _READING).write_text(json.dumps(found.reading.to_json()), encoding="utf-8")
    tell(1.0, "Comparing with what is there")
    commands.settle_check(db, job.id, rehearse(db, found).to_json())


def _fetch(db: Database, import_id: int, wanted: HubSet, path: Path) -> None:
    def tell(share: float, message: str) -> None:
        commands.report_import_progress(db, import_id, share, message)

    unfinished = path.with_suffix(".part")
    fetch_rows(wanted, unfinished, patient(tell))
    unfinished.replace(path)


def _store(db: Database, job: Import) -> None:
    folder = import_folder(db.settings, job.id)
    reading = Reading.from_json(json.loads((folder / _READING).read_text(encoding="utf-8")))

    def tell(share: float, message: str) -> None:
        commands.report_import_progress(db, job.id, share, message)

    store(db, job.id, folder / _STAGED, reading, tell)
    shutil.rmtree(folder, ignore_errors=True)  # what they held is in the database
