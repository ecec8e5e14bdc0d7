"""Imports by a process of their own: all or nothing however they end, and each end is told."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from app import import_jobs
from db import commands, queries
from db.engine import Database
from db.enums import ImportState
from db.errors import ConflictError
from db.import_job import import_folder, run_import_job
from db.importing import import_bytes
from db.records import Import, ImportFile
from trainer.runs.process import Mark, own_machine, start_time

KILLED_AT = """
import os, signal, sys
import db.importing, db.commands.adding as adding
from db.__main__ import main

whole, calls = adding.insert_conversations, 0

def insert(*arguments, **named):
    global calls
    calls += 1
    ids = whole(*arguments, **named)
    if calls == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return ids

adding.insert_conversations = insert
sys.exit(main(sys.argv[1:]))
"""
"""The command line, killed with the second of three lists of conversations stored."""


def native(count: int) -> str:
    return "".join(
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": f"question {n}"},
                    {"role": "assistant", "content": "answer", "score": 0.5},
                ]
            }
        )
        + "\n"
        for n in range(count)
    )


def waiting(database: Database, text: str) -> Import:
    """Put a file where an upload would be, as an import that is to be checked."""
    import_id = commands.create_import(database, [ImportFile(name="a.jsonl")], user_id=1)
    folder = import_folder(database.settings, import_id)
    folder.mkdir(parents=True)
    (folder / "0").write_text(text)
    return queries.import_(database, import_id)


def counts(database: Database) -> tuple[int, int]:
    overview = queries.overview(database)
    return overview.conversations, overview.scored_turns


def test_a_check_reports_and_an_import_stores_what_it_reported(database: Database) -> None:
    job = waiting(database, native(3) + "{broken\n")
    run_import_job(database, job.id)
    checked = queries.import_(database, job.id)
    assert checked.state is ImportState.CHECKED
    assert checked.report is not None
    assert (checked.report.conversations, len(checked.report.skipped)) == (3, 1)
    assert counts(database) == (0, 0)
    assert commands.start_import(database, job.id)
    assert not commands.start_import(database, job.id)  # a second click
    assert not commands.check_import(database, job.id, job.files)  # one that comes late
    run_import_job(database, job.id)
    done = queries.import_(database, job.id)
    assert (done.state, done.report) == (ImportState.DONE, checked.report)
    assert not commands.check_import(database, job.id, job.files)
    with pytest.raises(ConflictError, match="done"):
        commands.check_import(database, job.id, [replace(job.files[0], format="kto")])
    assert counts(database) == (3, 3)
    assert not import_folder(database.settings, job.id).exists()


def test_a_zip_archive_becomes_its_files_which_can_be_read_otherwise(database: Database) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.jsonl", native(2))
        archive.writestr("user.json", '{"email": 1}')
    import_id = commands.create_import(database, [ImportFile(name="e.zip")], user_id=1)
    folder = import_folder(database.settings, import_id)
    folder.mkdir(parents=True)
    (folder / "0").write_bytes(stream.getvalue())
    run_import_job(database, import_id)
    checked = queries.import_(database, import_id)
    assert checked.report is not None, checked.error_text
    assert [file.name for file in checked.files] == ["e.zip/a.jsonl", "e.zip/user.json"]
    assert (checked.report.conversations, len(checked.report.skipped)) == (2, 1)
    files = [replace(file, encoding="cp1252") for file in checked.files]
    assert commands.check_import(database, import_id, files)
    run_import_job(database, import_id)
    assert queries.import_(database, import_id).files == tuple(files)


@pytest.mark.parametrize("way", ["command line", "job"])
def test_an_import_killed_in_the_middle_leaves_nothing(
    database: Database, tmp_path: Path, way: str
) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text(native(1200))  # three lists of at most 500
    arguments = ["import", str(file)]
    if way == "job":
        job = waiting(database, file.read_text())
        run_import_job(database, job.id)
        commands.start_import(database, job.id)
        arguments = ["import-job", str(job.id)]
    ended = subprocess.run(
        [sys.executable, "-c", KILLED_AT, *arguments], timeout=120, check=False
    ).returncode
    assert ended == -signal.SIGKILL
    assert counts(database) == (0, 0)
    assert import_bytes(database, native(1200).encode(), source="again").conversations == 1200


def test_a_failure_is_told_by_the_row(database: Database) -> None:
    job = waiting(database, '{"alien": 1}')
    run_import_job(database, job.id)
    failed = queries.import_(database, job.id)
    assert failed.state is ImportState.FAILED
    assert "none of the known formats" in failed.error_text


def test_an_import_that_was_cancelled_meanwhile_stores_nothing(database: Database) -> None:
    job = waiting(database, native(2))
    run_import_job(database, job.id)
    commands.start_import(database, job.id)
    commands.cancel_import(database, job.id)
    run_import_job(database, job.id)  # it comes too late
    assert queries.import_(database, job.id).state is ImportState.CANCELLED
    assert counts(database) == (0, 0)


def test_a_real_process_checks_imports_and_can_be_ended(database: Database) -> None:
    class Upload:
        name = "real.jsonl"

        def getbuffer(self) -> memoryview:
            return memoryview(native(2).encode())

    import_id = import_jobs.receive(database, [Upload()], user_id=1)
    checked = ended(database, import_id)
    assert checked.state is ImportState.CHECKED, checked.error_text
    import_jobs.begin_import(database, import_id)
    assert ended(database, import_id).state is ImportState.DONE
    assert counts(database) == (2, 2)

    other = import_jobs.receive(database, [Upload()], user_id=1)
    import_jobs.cancel(database, other)
    cancelled = queries.import_(database, other)
    assert cancelled.state in (ImportState.CANCELLED, ImportState.CHECKED)
    import_jobs.discard(database, other)
    assert not import_folder(database.settings, other).exists()


def ended(database: Database, import_id: int) -> Import:
    """Wait until the import's process has ended."""
    while (job := queries.import_(database, import_id)).state.has_process:
        if job.process:
            pid = int(job.process.split()[0])
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        import_jobs.reconcile_imports(database)
    return job


def test_a_process_that_died_without_a_word_is_noticed(database: Database) -> None:
    job = waiting(database, native(1))
    sleeper = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    started_at = start_time(sleeper.pid)
    assert started_at is not None
    mark = Mark(machine=own_machine(), pid=sleeper.pid, started_at=started_at)
    commands.record_import_process(database, job.id, str(mark))
    import_jobs.reconcile_imports(database)
    assert queries.import_(database, job.id).state is ImportState.CHECKING
    sleeper.kill()
    sleeper.wait()
    import_jobs.reconcile_imports(database)
    failed = queries.import_(database, job.id)
    assert failed.state is ImportState.FAILED
    assert "Nothing was stored" in failed.error_text
