"""A run's life with real processes and a real database, on a tiny model."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ArtifactKind, ErrorKind, Role, RunStatus
from db.errors import NotFoundError
from db.records import Conversation, Message
from tests.db.building import queued_run
from tests.live_runs import config_for, ended, has_steps, launch, wait_for
from tests.trainer.runs.conftest import ForkedRuns
from trainer.__main__ import main
from trainer.errors import BadDataError
from trainer.runs.folder import RunFolder
from trainer.runs.launch import request_stop, resume_run

pytestmark = pytest.mark.slow


def test_a_run_trains_in_its_own_process_and_leaves_everything_behind(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    run = launch(database, conversation_ids, config_for(tiny_llama), "first")
    assert run.status is RunStatus.STARTING
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_text, run.progress) == (RunStatus.FINISHED, "", 1.0)
    turns = queries.turn_metrics(database, run.id)
    assert len(turns) == 8 * 3 * 2 == run.metric_rows
    assert [row.ratio_mean for row in turns if row.step == 0] == [1.0] * 12
    steps = queries.step_metrics(database, run.id)
    assert [(row.step, row.attempt) for row in steps] == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert all(row.cpu_percent is not None and 0 <= row.cpu_percent <= 100 for row in steps)
    assert {row.gpu_percent for row in steps} == {None}
    assert {artifact.kind for artifact in queries.artifacts(database, run.id)} == set(ArtifactKind)
    folder = RunFolder(database.settings.run_dir(run.id))
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert len(lines) == len(turns)
    (sample,) = json.loads(folder.samples.read_text())
    assert sample["prompt"][-1]["content"] == "Question 0.0?"
    assert isinstance(sample["after"], str)
    assert f"attempt 1 of run {run.id}" in folder.log_tail()


def test_a_run_told_to_end_in_its_first_second_is_stopped_and_not_killed(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    run = launch(database, conversation_ids, config_for(tiny_llama), "early")
    assert run.pid is not None
    os.kill(run.pid, signal.SIGTERM)
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.STOPPED, None)


def test_a_run_whose_process_cannot_load_a_package_says_which_and_not_that_it_was_killed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = queued_run(database)
    commands.claim_next_run(database)
    monkeypatch.setitem(sys.modules, "trainer.runs.worker", None)
    with pytest.raises(ModuleNotFoundError):
        main(["run", str(run.id)])
    run = queries.run(database, run.id)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.UNEXPECTED)
    assert "trainer.runs.worker" in run.error_text


def test_two_clicks_make_one_run(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    runs = [launch(database, conversation_ids, config_for(tiny_llama), "same") for _ in range(2)]
    assert runs[0].id == runs[1].id
    assert len(queries.runs(database)) == 1
    assert wait_for(database, runs[0].id, ended).status is RunStatus.FINISHED


def test_a_second_run_waits_and_starts_when_the_first_has_ended(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    first, second = (
        launch(database, conversation_ids, config_for(tiny_llama), name) for name in ("a", "b")
    )
    assert second.status is RunStatus.QUEUED
    assert queries.queue_position(database, second.id) == 0
    first = wait_for(database, first.id, ended)
    second = wait_for(database, second.id, ended)
    assert (first.status, second.status) == (RunStatus.FINISHED, RunStatus.FINISHED)
    assert first.ended_at and second.started_at and first.ended_at <= second.started_at


def test_a_stopped_run_resumes_to_the_very_numbers_of_an_uninterrupted_one(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    config = config_for(tiny_llama, epochs=6, batch_conversations=1, max_kl=0.0)
    whole = wait_for(database, launch(database, conversation_ids, config, "whole").id, ended)
    forked.hook = ("tests.faults", "slow")
    broken = launch(database, conversation_ids, config, "broken")
    wait_for(database, broken.id, has_steps(database, 3))
    assert request_stop(database, broken.id).status is RunStatus.STOPPING
    broken = wait_for(database, broken.id, ended)
    assert broken.status is RunStatus.STOPPED
    assert len(queries.step_metrics(database, broken.id)) < 48
    forked.hook = None
    for _ in range(2):  # a double click, or a second tab
        resume_run(database, broken.id, attempt=1)
    broken = wait_for(database, broken.id, ended)
    assert (broken.status, broken.attempt) == (RunStatus.FINISHED, 2)
    assert queries.turn_metrics(database, broken.id) == queries.turn_metrics(database, whole.id)
    assert {row.attempt for row in queries.step_metrics(database, broken.id)} == {1, 2}
    weights = [
        (RunFolder(database.settings.run_dir(run.id)).adapter / "adapter_model.safetensors")
        for run in (whole, broken)
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_failure_is_told_in_words(
    database: Database,
    conversation_ids: list[int],
    tiny_without_template: Path,
    forked: ForkedRuns,
) -> None:
    run = launch(database, conversation_ids, config_for(tiny_without_template), "no template")
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.CHAT_TEMPLATE)
    assert "no chat template" in run.error_text
    assert "Traceback" not in run.error_text


def test_a_run_that_comes_to_nan_says_where_and_leaves_no_adapter(
    database: Database, conversation_ids: list[int], tiny_llama: Path, forked: ForkedRuns
) -> None:
    forked.hook = ("tests.faults", "not a number")
    run = launch(database, conversation_ids, config_for(tiny_llama), "nan")
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.NOT_A_NUMBER)
    assert "step 3, conversation" in run.error_text
    assert len(queries.step_metrics(database, run.id)) == 2
    assert not RunFolder(database.settings.run_dir(run.id)).adapter.exists()
    forked.hook = None
    resume_run(database, run.id)
    assert wait_for(database, run.id, ended).status is RunStatus.FINISHED


def test_data_without_signal_never_becomes_a_run(database: Database, tiny_llama: Path) -> None:
    message = Message(role=Role.ASSISTANT, content="Hello.")
    ids, _ = commands.add_conversations(database, [Conversation(messages=(message,))])
    with pytest.raises(BadDataError, match="No assistant turn has a score"):
        launch(database, ids, config_for(tiny_llama), "nothing")
    assert queries.runs(database) == []


def test_a_run_for_an_endpoint_that_nobody_named_never_becomes_one(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    with pytest.raises(NotFoundError, match="no endpoint called 'nowhere'"):
        launch(database, conversation_ids, config_for(tiny_llama, endpoint="nowhere"), "lost")
    assert queries.runs(database) == []
