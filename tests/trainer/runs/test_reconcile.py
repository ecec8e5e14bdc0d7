"""The database's word about runs is made true, whoever died and whatever the clock says."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus, StopStage
from db.records import Run, TurnMetric
from db.settings import Settings
from tests.db.building import queued_run, step_metric, turn_metric
from tests.live_runs import (
    NEW_SCORE,
    config_for,
    ended,
    has_steps,
    launch,
    score_of_first_reply,
    wait_for,
)
from tests.trainer.runs.conftest import ForkedRuns
from trainer.runs import launch as launching
from trainer.runs import process
from trainer.runs import reconcile as reconciling
from trainer.runs.folder import RunFolder
from trainer.runs.launch import request_stop, resume_run
from trainer.runs.metric_files import append_rows, read_rows, rewind
from trainer.runs.process import own_mark
from trainer.runs.reconcile import reconcile

FOREVER = [
    sys.executable,
    "-S",
    "-c",
    "import os, time\nparent = os.getppid()\nwhile os.getppid() == parent: time.sleep(0.5)",
]
"""A process that lives as long as the test's own."""


def web(*arguments: str) -> subprocess.Popen[str]:
    """Start a web process on the test's database."""
    root = Path(__file__).parents[3]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.web", *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )


def stays_alive(settings: Settings, run_id: int, endpoint_key: str) -> int:
    """Start a process that stands for a run's and never ends; the `settings` fixture kills it."""
    del settings, run_id, endpoint_key
    return subprocess.Popen(FOREVER).pid


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose process does nothing, for ever."""
    monkeypatch.setattr(launching, "start_process", stays_alive)


@pytest.fixture
def running(database: Database) -> Iterator[Run]:
    """A run whose process is this one."""
    run = queued_run(database)
    commands.claim_next_run(database)
    mark = own_mark()
    commands.record_process(
        database, run.id, pid=mark.pid, process_started_at=mark.started_at, machine=mark.machine
    )
    commands.begin_run(database, run.id)
    reconcile(database)
    run = queries.run(database, run.id)
    assert run.status is RunStatus.RUNNING
    yield run
    commands.end_run(database, run.id, RunStatus.STOPPED)


def put_on(database: Database, run: Run, *, machine: str, started_at: float | None = None) -> None:
    assert run.pid is not None and run.process_started_at is not None
    commands.record_process(
        database,
        run.id,
        pid=run.pid,
        process_started_at=started_at or run.process_started_at,
        machine=machine,
    )


def set_clock(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    """Let the reader's clock be ahead (or behind) of the one that wrote the rows."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime.now(UTC) + by

    monkeypatch.setattr(reconciling, "datetime", Clock)


def held_by_this_process() -> set[str]:
    """Return the threads, children and open files that there are, the database's left out."""
    own = psutil.Process()
    files = [file.path for file in own.open_files() if "everyturn.db" not in file.path]
    children = [f"child {child.pid}" for child in own.children()]
    return {*(thread.name for thread in threading.enumerate()), *files, *children}


def assert_no_more_held(before: set[str]) -> None:
    """Nothing of the runs since is left here: no zombie, no thread that waits for one, no log."""
    deadline = time.monotonic() + 10
    while more := held_by_this_process() - before:
        assert time.monotonic() < deadline, more
        time.sleep(0.05)


def test_a_reused_process_id_is_not_taken_for_the_run_and_the_next_one_starts(
    database: Database, running: Run, idle: None
) -> None:
    waiting = queued_run(database, "next")
    assert running.process_started_at is not None
    put_on(database, running, machine=running.machine, started_at=running.process_started_at - 0.01)
    reconcile(database)
    run = queries.run(database, running.id)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.KILLED)
    assert queries.run(database, waiting.id).status is RunStatus.STARTING


@pytest.mark.parametrize("by", [timedelta(days=1), timedelta(days=-1)])
def test_a_clock_that_jumps_ends_no_live_run(
    database: Database, running: Run, monkeypatch: pytest.MonkeyPatch, by: timedelta
) -> None:
    set_clock(monkeypatch, by)
    reconcile(database)
    assert queries.run(database, running.id).status is RunStatus.RUNNING


def test_a_clock_that_is_set_back_during_a_stop_only_begins_its_time_anew(
    database: Database, running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = request_stop(database, running.id)
    assert first.stop_stage_at is not None
    set_clock(monkeypatch, timedelta(days=-1))
    reconcile(database)
    again = queries.run(database, running.id)
    assert again.stop_stage is StopStage.ASKED
    assert again.stop_stage_at is not None and again.stop_stage_at > first.stop_stage_at


def test_runs_start_in_the_order_of_the_queue_though_the_clock_was_set_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a", "b", "c"]
    for name in names:
        queued_run(database, name)
        moment = datetime.now(UTC) - timedelta(hours=1 + names.index(name))
        monkeypatch.setattr("db.models.runs.now", lambda moment=moment: moment)
    waiting = queries.runs_with_status(database, RunStatus.QUEUED)
    assert [run.name for run in waiting] == names


def test_a_machine_started_anew_turns_running_into_interrupted_and_the_run_can_go_on(
    database: Database, running: Run, idle: None
) -> None:
    host = process.own_machine().partition(" ")[0]
    put_on(database, running, machine=f"{host} the-boot-before 1.0")
    reconcile(database)
    run = queries.run(database, running.id)
    assert (run.status, run.error_kind) == (RunStatus.INTERRUPTED, ErrorKind.INTERRUPTED)
    assert "resume it" in run.error_text
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.path.mkdir(parents=True)
    for file in (folder.config, folder.data):
        file.touch()
    resumed = resume_run(database, run.id)
    assert (resumed.status, resumed.attempt) == (RunStatus.STARTING, 2)
    request_stop(database, run.id)


def test_a_run_on_another_machine_is_believed_until_it_falls_silent(
    database: Database, running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on(database, running, machine="elsewhere boot 1.0")
    reconcile(database)
    assert queries.run(database, running.id).status is RunStatus.RUNNING
    set_clock(monkeypatch, timedelta(minutes=2))
    reconcile(database)
    run = queries.run(database, running.id)
    assert (run.status, run.error_kind) == (RunStatus.INTERRUPTED, ErrorKind.INTERRUPTED)


def test_figures_that_only_the_files_of_a_dead_run_have_are_brought_in(
    database: Database, running: Run
) -> None:
    folder = RunFolder(database.settings.run_dir(running.id))
    folder.path.mkdir(parents=True)
    rows = [turn_metric(step=step) for step in range(3)]
    commands.add_turn_metrics(database, running.id, rows[:1])
    append_rows(folder.metrics, rows)
    append_rows(folder.steps, [step_metric(step=0)])
    with folder.metrics.open("a") as file:
        file.write('{"step": 3, "conv')  # and here it was killed
    put_on(database, running, machine=running.machine, started_at=1.0)
    reconcile(database)
    assert queries.turn_metrics(database, running.id) == rows
    assert queries.step_metrics(database, running.id) == [step_metric(step=0)]


def test_lines_that_are_damaged_are_passed_over_and_the_rest_is_kept(
    database: Database, running: Run
) -> None:
    folder = RunFolder(database.settings.run_dir(running.id))
    folder.path.mkdir(parents=True)
    rows = [turn_metric(step=step) for step in range(2)]
    append_rows(folder.metrics, rows[:1])
    with folder.metrics.open("ab") as file:
        file.write(b'{"step": 1}\n[1]\nnull\n\xff\xfe garbage\n' + b"[" * 100_000 + b"\n")
    append_rows(folder.metrics, rows[1:])
    put_on(database, running, machine=running.machine, started_at=1.0)
    reconcile(database)
    assert queries.run(database, running.id).status is RunStatus.FAILED
    assert queries.turn_metrics(database, running.id) == rows
    rewind(folder.metrics, 0)
    assert read_rows(folder.metrics, TurnMetric) == rows[:1]


def test_twenty_runs_queued_and_cancelled_in_random_order_leave_a_true_queue(
    database: Database, conversation_ids: list[int], tiny_llama: Path, idle: None
) -> None:
    config = config_for(tiny_llama)
    before = held_by_this_process()
    holder = launch(database, conversation_ids, config, "holder")
    waiting = [launch(database, conversation_ids, config, f"run {n}").id for n in range(20)]
    order = random.Random(7)
    cancelled = order.sample(waiting, 15)
    for run_id in cancelled:
        assert request_stop(database, run_id).status is RunStatus.STOPPED
        reconcile(database)
        left = [id for id in waiting if not queries.run(database, id).status.has_ended]
        assert [queries.queue_position(database, id) for id in left] == list(range(len(left)))
    assert queries.run(database, holder.id).status is RunStatus.STARTING
    left = [id for id in waiting if id not in cancelled]
    moved = order.choice(left)
    assert commands.move_waiting_run(database, moved, position=0)[0] == moved
    expected = [moved, *(id for id in left if id != moved)]
    for run_id in [holder.id, *expected]:
        run = queries.run(database, run_id)
        assert run.status is RunStatus.STARTING and run.pid and run.process_started_at
        process.end(run.pid, run.process_started_at, force=True)
        wait_for(database, run_id, ended)
        reconcile(database)
    assert {run.status for run in queries.runs(database)} == {RunStatus.FAILED, RunStatus.STOPPED}
    assert_no_more_held(before)


def test_two_web_processes_start_each_run_once(
    database: Database, conversation_ids: list[int], tiny_llama: Path, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    rivals = [web("compete", str(tiny_llama), str(started), "4") for _ in range(2)]
    assert [rival.wait(timeout=120) for rival in rivals] == [0, 0]
    runs = queries.runs(database)
    assert sorted(run.name for run in runs) == [f"token {n}" for n in range(4)]
    assert started.read_text().split() == [str(run.id) for run in sorted(runs, key=lambda r: r.id)]
    assert {(run.status, run.attempt) for run in runs} == {(RunStatus.FAILED, 1)}


def test_a_run_outlives_the_killed_web_process_and_the_next_one_adopts_it(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    app = web("start_and_die", str(tiny_llama), str(forked.forks.socket))
    assert app.wait(timeout=120) == -signal.SIGKILL
    (run,) = queries.runs(database)
    assert not run.status.has_ended
    behind = launch(database, conversation_ids, config_for(tiny_llama), "behind")
    run = wait_for(database, run.id, ended)
    assert (run.status, run.attempt) == (RunStatus.FINISHED, 1)
    assert has_steps(database, 8)(run)
    assert score_of_first_reply(database) == NEW_SCORE
    assert wait_for(database, behind.id, ended).status is RunStatus.FINISHED


def test_a_run_whose_web_process_was_killed_while_it_waited_keeps_its_place_and_starts(
    database: Database, conversation_ids: list[int], tiny_llama: Path, idle: None
) -> None:
    holder = launch(database, conversation_ids, config_for(tiny_llama), "holder")
    app = web("queue_and_die", str(tiny_llama))
    assert app.wait(timeout=120) == -signal.SIGKILL
    behind = launch(database, conversation_ids, config_for(tiny_llama), "behind")
    reconcile(database)
    (waiting, last) = queries.runs_with_status(database, RunStatus.QUEUED)
    assert (waiting.name, last.id) == ("waiting", behind.id)
    assert (queries.queue_position(database, waiting.id), waiting.pid) == (0, None)
    assert holder.pid is not None and holder.process_started_at is not None
    process.end(holder.pid, holder.process_started_at, force=True)
    assert wait_for(database, holder.id, ended).error_kind is ErrorKind.KILLED
    assert queries.run(database, waiting.id).status is RunStatus.STARTING
    assert queries.run(database, behind.id).status is RunStatus.QUEUED


def test_a_web_process_killed_before_it_started_a_waiting_run_does_not_lose_it(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    app = web("die_before_starting", str(tiny_llama))
    assert app.wait(timeout=120) == -signal.SIGKILL
    (run,) = queries.runs(database)
    assert (run.status, run.pid) == (RunStatus.STARTING, None)
    reconcile(database)
    assert queries.run(database, run.id).pid is not None
    run = wait_for(database, run.id, ended)
    assert (run.status, run.attempt) == (RunStatus.FINISHED, 1)


def test_a_web_process_killed_while_it_prepared_a_run_leaves_a_failure_that_blocks_nobody(
    database: Database, conversation_ids: list[int], tiny_llama: Path, idle: None
) -> None:
    app = web("die_before_freezing", str(tiny_llama))
    assert app.wait(timeout=120) == -signal.SIGKILL
    reconcile(database)
    (run,) = queries.runs(database)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.KILLED)
    assert "Launch it again" in run.error_text
    after = launch(database, conversation_ids, config_for(tiny_llama), "next")
    assert after.status is RunStatus.STARTING


def test_a_waiting_run_has_no_process_and_loads_no_torch(
    database: Database, conversation_ids: list[int], tiny_llama: Path, idle: None
) -> None:
    launch(database, conversation_ids, config_for(tiny_llama), "holder")
    app = web("wait_in_line", str(tiny_llama))
    out, _ = app.communicate(timeout=120)
    assert (app.returncode, out) == (0, "[] []\n")
