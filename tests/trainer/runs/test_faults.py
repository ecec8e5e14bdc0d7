"""Whatever happens to a run, its machine or the app: the truth is shown and nothing is lost."""

import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus, StopStage
from db.errors import ConflictError
from db.records import Run, StepMetric, TurnMetric
from tests import faults
from tests.db.building import queued_run
from tests.live_runs import (
    NEW_SCORE,
    config_for,
    ended,
    has_steps,
    launch,
    long_config,
    rescore_first_reply,
    score_of_first_reply,
    wait_for,
)
from tests.trainer.runs.conftest import ForkedRuns
from trainer.errors import FolderGoneError
from trainer.runs import reconcile as reconciling
from trainer.runs import worker
from trainer.runs.folder import RunFolder
from trainer.runs.launch import request_stop, resume_run
from trainer.runs.log import LOG_LIMIT_BYTES
from trainer.runs.metric_files import read_rows
from trainer.runs.reconcile import reconcile
from trainer.runs.remove import remove_run

pytestmark = pytest.mark.slow

LOCKED_S = 10


def folder_of(database: Database, run: Run) -> RunFolder:
    return RunFolder(database.settings.run_dir(run.id))


def assert_nothing_lost(database: Database, run: Run) -> None:
    """Every row of the files is in the database, and as it was measured."""
    folder = folder_of(database, run)
    assert queries.turn_metrics(database, run.id) == sorted(
        read_rows(folder.metrics, TurnMetric), key=lambda r: (r.step, r.conversation, r.turn)
    )
    assert queries.step_metrics(database, run.id) == read_rows(folder.steps, StepMetric)


def assert_gone(pid: int | None) -> None:
    assert pid is not None
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline, psutil.Process(pid).status()
        time.sleep(0.05)


def test_a_run_killed_in_the_middle_of_a_step_is_found_dead_at_the_next_poll(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.faults", "slow")
    doomed = launch(database, conversation_ids, long_config(tiny_llama), "doomed")
    waiting = launch(database, conversation_ids, config_for(tiny_llama), "next")
    doomed = wait_for(database, doomed.id, has_steps(database, 2))
    assert doomed.pid is not None
    forked.hook = None
    os.kill(doomed.pid, signal.SIGKILL)
    assert_gone(doomed.pid)
    reconcile(database)
    dead = queries.run(database, doomed.id)
    assert (dead.status, dead.error_kind) == (RunStatus.FAILED, ErrorKind.KILLED)
    assert "Last lines of the log" in dead.error_text
    assert_nothing_lost(database, dead)
    assert queries.run(database, waiting.id).status is RunStatus.STARTING
    assert wait_for(database, waiting.id, ended).status is RunStatus.FINISHED


def test_a_run_killed_in_the_middle_of_a_checkpoint_goes_on_from_the_one_before(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.killing", "checkpoint-half-written")
    run = launch(database, conversation_ids, config_for(tiny_llama, epochs=3), "doomed")
    forked.hook = None
    waiting = launch(database, conversation_ids, config_for(tiny_llama), "next")
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.KILLED)
    assert_nothing_lost(database, run)
    assert {row.step for row in queries.step_metrics(database, run.id)} == {0, 1, 2, 3}
    assert wait_for(database, waiting.id, ended).status is RunStatus.FINISHED
    resume_run(database, run.id)
    run = wait_for(database, run.id, ended)
    assert (run.status, run.attempt) == (RunStatus.FINISHED, 2)
    assert_nothing_lost(database, run)
    attempts = [row.attempt for row in queries.step_metrics(database, run.id)]
    assert attempts == [1, 1, 2, 2, 2, 2]  # what came after the whole checkpoint is measured anew


@dataclass(frozen=True)
class SmallDisk:
    """A disk of a few megabytes, or what behaves like one where none can be mounted."""

    folder: Path
    is_mounted: bool

    def fill(self) -> None:
        if not self.is_mounted:
            (self.folder / faults.FULL).touch()
            return
        with (self.folder / faults.FULL).open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self) -> None:
        (self.folder / faults.FULL).unlink()


@pytest.fixture
def small_disk(database: Database) -> Iterator[SmallDisk]:
    """The disk that the first run's folder is on."""
    folder = database.settings.run_dir(1)
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "everyturn-test", str(folder)]
    mounted = subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode == 0
    yield SmallDisk(folder=folder, is_mounted=mounted)
    if mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_ends_a_run_in_words_and_it_resumes_once_there_is_space(
    database: Database,
    conversation_ids: list[int],
    tiny_llama: Path,
    forked: ForkedRuns,
    small_disk: SmallDisk,
) -> None:
    forked.hook = ("tests.faults", "slow" if small_disk.is_mounted else "no space")
    run = launch(database, conversation_ids, config_for(tiny_llama, epochs=6), "full")
    assert folder_of(database, run).path == small_disk.folder
    wait_for(database, run.id, has_steps(database, 3))
    small_disk.fill()
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.DISK_FULL)
    assert "No space is left" in run.error_text
    assert len(queries.step_metrics(database, run.id)) >= 3
    assert launch(database, conversation_ids, config_for(tiny_llama), "other").status is (
        RunStatus.STARTING
    )
    small_disk.free()
    forked.hook = None
    resume_run(database, run.id)
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_text) == (RunStatus.FINISHED, "")
    assert_nothing_lost(database, run)


def test_a_database_locked_for_ten_seconds_loses_no_figure_and_no_score_and_keeps_no_page_waiting(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.faults", "slow")
    run = launch(database, conversation_ids, config_for(tiny_llama, epochs=8), "run")
    run = wait_for(database, run.id, has_steps(database, 1))
    waiting = launch(database, conversation_ids, config_for(tiny_llama), "next")
    known = len(queries.step_metrics(database, run.id))
    assert database.sqlite_file is not None
    with closing(sqlite3.connect(database.sqlite_file)) as other:
        other.execute("BEGIN IMMEDIATE")
        locked_at = time.monotonic()
        scoring = threading.Thread(target=rescore_first_reply, args=(database,))
        scoring.start()
        polls = 0
        while time.monotonic() - locked_at < LOCKED_S:
            reconcile(database)
            assert queries.run(database, run.id).status is RunStatus.RUNNING
            polls += 1
            time.sleep(0.2)
        assert polls > 3  # had a poll waited for the lock, there would have been one
        assert len(queries.step_metrics(database, run.id)) == known
        other.rollback()
    scoring.join()
    assert score_of_first_reply(database) == NEW_SCORE
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_text) == (RunStatus.FINISHED, "")
    assert_nothing_lost(database, run)
    assert len(queries.step_metrics(database, run.id)) == 16
    assert wait_for(database, waiting.id, ended).status is RunStatus.FINISHED


def test_a_folder_deleted_under_a_live_run_ends_it_and_does_not_come_back(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.faults", "slow")
    run = launch(database, conversation_ids, long_config(tiny_llama), "run")
    waiting = launch(database, conversation_ids, config_for(tiny_llama), "next")
    run = wait_for(database, run.id, has_steps(database, 1))
    forked.hook = None
    trash = folder_of(database, run).path.rename(database.settings.home / "trash")
    shutil.rmtree(trash)  # out of the way first: the run writes while files go
    gone = wait_for(database, run.id, ended)
    assert (gone.status, gone.error_kind) == (RunStatus.FAILED, ErrorKind.FOLDER_GONE)
    assert_gone(run.pid)
    assert not folder_of(database, run).path.exists()
    with pytest.raises(FolderGoneError):
        resume_run(database, run.id)
    remove_run(database, run.id)
    assert wait_for(database, waiting.id, ended).status is RunStatus.FINISHED


def test_a_run_that_prints_ten_megabytes_is_neither_held_up_nor_keeps_them(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.faults", "chatty")
    run = launch(database, conversation_ids, config_for(tiny_llama, epochs=4), "chatty")
    run = wait_for(database, run.id, ended)
    assert run.status is RunStatus.FINISHED
    folder = folder_of(database, run)
    whole = folder.whole_log()
    assert len(folder.logs) > 1
    assert LOG_LIMIT_BYTES < len(whole) < faults.CHATTER_BYTES - LOG_LIMIT_BYTES
    assert whole.endswith(folder.log_tail(1).encode() + b"\n")
    assert "epoch 4 step 8" in folder.log_tail()


def test_a_run_that_hears_nothing_is_asked_then_terminated_then_killed(
    database: Database,
    conversation_ids: list[int],
    tiny_llama: Path,
    forked: ForkedRuns,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forked.hook = ("tests.faults", "stubborn")
    run = launch(database, conversation_ids, long_config(tiny_llama), "stubborn")
    run = wait_for(database, run.id, has_steps(database, 1))
    with pytest.raises(ConflictError):
        remove_run(database, run.id)
    asked = request_stop(database, run.id)
    assert (asked.status, asked.stop_stage) == (RunStatus.STOPPING, StopStage.ASKED)
    reconcile(database)
    assert queries.run(database, run.id).stop_stage is StopStage.ASKED  # it has a minute
    grace = dict.fromkeys(StopStage, timedelta(seconds=0.5))
    monkeypatch.setattr(reconciling, "STOP_GRACE", grace)
    seen = [StopStage.ASKED]

    def note_stage(now: Run) -> bool:
        if now.stop_stage is not None and now.stop_stage is not seen[-1]:
            seen.append(now.stop_stage)
        return now.status.has_ended

    ended_run = wait_for(database, run.id, note_stage)
    assert seen == [StopStage.ASKED, StopStage.TERMINATED, StopStage.KILLED]
    assert (ended_run.status, ended_run.error_kind) == (RunStatus.STOPPED, None)
    assert_gone(run.pid)
    assert_nothing_lost(database, ended_run)
    remove_run(database, run.id)
    assert not folder_of(database, run).path.exists()


def test_a_run_told_to_end_twice_ends_at_once_and_goes_on_from_its_last_checkpoint(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.faults", "slow pass")
    config = config_for(tiny_llama, batch_conversations=1)
    run = launch(database, conversation_ids, config, "impatient")
    run = wait_for(database, run.id, has_steps(database, 9))  # one behind the epoch's checkpoint
    assert run.pid is not None
    for _ in range(2):
        os.kill(run.pid, signal.SIGTERM)
        time.sleep(0.2)
    assert_gone(run.pid)
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.STOPPED, None)
    assert_nothing_lost(database, run)
    forked.hook = None
    resume_run(database, run.id)
    run = wait_for(database, run.id, ended)
    assert run.status is RunStatus.FINISHED
    attempts = [row.attempt for row in queries.step_metrics(database, run.id)]
    assert attempts == [1] * 8 + [2] * 8


def test_a_second_process_of_a_run_gives_way_though_both_came_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the death of a web process that had started the run's process, not noted it down."""
    run = queued_run(database)
    commands.claim_next_run(database)
    whole = commands.begin_run

    def begin_run(database: Database, run_id: int) -> None:
        commands.record_process(database, run_id, pid=4711, process_started_at=1.0)
        whole(database, run_id)

    monkeypatch.setattr(commands, "begin_run", begin_run)
    monkeypatch.setattr(worker, "stop_on_signals", lambda recorder: None)
    with pytest.raises(ConflictError, match="process 4711 is at work on it"):
        worker.work(database, run.id)
    run = queries.run(database, run.id)
    assert (run.status, run.pid) == (RunStatus.RUNNING, 4711)
