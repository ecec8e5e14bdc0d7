"""What the pages read from a run's folder is left out where it is damaged; the rest stands."""

import pytest

from app import run_files
from db.engine import Database
from db.settings import Settings
from tests.db.building import queued_run
from trainer.runs.folder import RunFolder


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\n", b"[1]", b"[{}]", b"{}", b"null", b"5", b'{"epoch": ', b"[" * 100_000],
    ids=lambda content: repr(content[:12]),
)
def test_damaged_files_are_left_out(database: Database, settings: Settings, content: bytes) -> None:
    run = queued_run(database)
    folder = RunFolder(settings.run_dir(run.id))
    folder.path.mkdir(parents=True)
    for file in (folder.samples, folder.changes, folder.held_out, folder.judgements):
        file.write_bytes(content)
    assert run_files.samples(run) == []
    assert run_files.changes(run) == []
    assert run_files.judgements(run) == []
    assert run_files.judge(run) is None
