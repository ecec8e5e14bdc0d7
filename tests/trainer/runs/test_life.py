"""A run's life with real processes and a real database, on a tiny model."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from db import commands, queries
from db.engine import Database, open_database
from db.enums import ArtifactKind, ErrorKind, Role, RunStatus
from db.records import Conversation, Message, Run, Score
from db.settings import Settings
from trainer.config import TrainConfig
from trainer.errors import BadDataError
from trainer.runs import process
from trainer.runs.folder import RunFolder
from trainer.runs.launch import request_stop, resume_run, start_run
from trainer.runs.reconcile import reconcile

pytestmark = pytest.mark.slow

PATIENCE_S = 120.0


@pytest.fixture
def database(settings: Settings) -> Database:
    return open_database(settings)


@pytest.fixture
def conversation_ids(database: Database) -> list[int]:
    """Eight conversations of three scored turns."""
    conversations = [
        Conversation(
            title=f"talk {number}",
            messages=tuple(
                message
                for turn in range(3)
                for message in (
                    Message(role=Role.USER, content=f"Question {number}.{turn}?"),
                    Message(
                        role=Role.ASSISTANT,
                        content=f"Answer {number} to {turn}.",
                        scores=(Score(rater="local", value=((number + turn) % 5) / 4),),
                    ),
                )
            ),
        )
        for number in range(8)
    ]
    ids, _ = commands.add_conversations(database, conversations)
    return ids


def config_for(model: Path, **changes: object) -> TrainConfig:
    settings = {"epochs": 2, "batch_conversations": 4, "sample_prompts": 1, "sample_tokens": 4}
    return TrainConfig.from_json({"base_model": str(model), "device": "cpu", **settings, **changes})


def wait_for(database: Database, run_id: int, condition: Callable[[Run], bool]) -> Run:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        reconcile(database)
        run = queries.run(database, run_id)
        if condition(run):
            return run
        time.sleep(0.1)
    log = RunFolder(database.settings.run_dir(run_id)).log_tail()
    raise AssertionError(f"run {run_id} is still {run.status}: {run.error_text}\n{log}")


def ended(run: Run) -> bool:
    return run.status.has_ended


def long_config(model: Path) -> TrainConfig:
    return config_for(model, epochs=100, batch_conversations=1, max_kl=0.0)


def test_a_run_trains_in_its_own_process_and_leaves_everything_behind(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    run = start_run(
        database,
        name="first",
        conversation_ids=conversation_ids,
        config=config_for(tiny_llama),
        start_token="click",
    )
    assert run.status is RunStatus.STARTING
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_text, run.progress) == (RunStatus.FINISHED, "", 1.0)
    assert run.pid != os.getpid()
    turns = queries.turn_metrics(database, run.id)
    assert len(turns) == 8 * 3 * 2
    assert [row.ratio_mean for row in turns if row.step == 0] == [1.0] * 12
    assert len(queries.step_metrics(database, run.id)) == 4
    assert {artifact.kind for artifact in queries.artifacts(database, run.id)} == set(ArtifactKind)
    folder = RunFolder(database.settings.run_dir(run.id))
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert len(lines) == len(turns)
    (sample,) = json.loads(folder.samples.read_text())
    assert sample["prompt"][-1]["content"] == "Question 0.0?"
    assert isinstance(sample["after"], str)


def test_two_clicks_make_one_run(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    runs = [
        start_run(
            database,
            name="twice",
            conversation_ids=conversation_ids,
            config=config_for(tiny_llama),
            start_token="same form",
        )
        for _ in range(2)
    ]
    assert runs[0].id == runs[1].id
    assert len(queries.runs(database)) == 1
    wait_for(database, runs[0].id, ended)


def test_a_second_run_waits_and_starts_when_the_first_has_ended(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    first, second = (
        start_run(
            database,
            name=token,
            conversation_ids=conversation_ids,
            config=config_for(tiny_llama),
            start_token=token,
        )
        for token in ("a", "b")
    )
    assert second.status is RunStatus.QUEUED
    assert queries.queue_position(database, second.id) == 0
    first = wait_for(database, first.id, ended)
    second = wait_for(database, second.id, ended)
    assert (first.status, second.status) == (RunStatus.FINISHED, RunStatus.FINISHED)
    assert first.ended_at and second.started_at and first.ended_at <= second.started_at


def test_a_stopped_run_resumes_to_the_very_numbers_of_an_uninterrupted_one(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    config = config_for(tiny_llama, epochs=12, batch_conversations=1, max_kl=0.0)

    def start(token: str) -> Run:
        return start_run(
            database,
            name=token,
            conversation_ids=conversation_ids,
            config=config,
            start_token=token,
        )

    whole = wait_for(database, start("whole").id, ended)
    broken = start("broken")
    wait_for(database, broken.id, lambda run: len(queries.step_metrics(database, run.id)) >= 3)
    assert request_stop(database, broken.id).status is RunStatus.STOPPING
    broken = wait_for(database, broken.id, ended)
    assert broken.status is RunStatus.STOPPED
    assert len(queries.step_metrics(database, broken.id)) < 96
    resume_run(database, broken.id)
    broken = wait_for(database, broken.id, ended)
    assert (broken.status, broken.attempt) == (RunStatus.FINISHED, 2)
    assert queries.turn_metrics(database, broken.id) == queries.turn_metrics(database, whole.id)
    weights = [
        (RunFolder(database.settings.run_dir(run.id)).adapter / "adapter_model.safetensors")
        for run in (whole, broken)
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_killed_run_is_found_dead_and_the_next_one_starts(
    database: Database, conversation_ids: list[int], tiny_llama: Path
) -> None:
    doomed = start_run(
        database,
        name="doomed",
        conversation_ids=conversation_ids,
        config=long_config(tiny_llama),
        start_token="a",
    )
    doomed = wait_for(database, doomed.id, lambda run: run.status is RunStatus.RUNNING)
    waiting = start_run(
        database,
        name="next",
        conversation_ids=conversation_ids,
        config=config_for(tiny_llama),
        start_token="b",
    )
    assert doomed.pid is not None
    os.kill(doomed.pid, signal.SIGKILL)
    doomed = wait_for(database, doomed.id, ended)
    assert (doomed.status, doomed.error_kind) == (RunStatus.FAILED, ErrorKind.KILLED)
    assert "Last lines of the log" in doomed.error_text
    assert wait_for(database, waiting.id, ended).status is RunStatus.FINISHED


def test_a_reused_process_id_is_not_taken_for_the_run(
    database: Database, conversation_ids: list[int]
) -> None:
    run = commands.create_run(
        database,
        name="ghost",
        config={},
        base_model="x",
        conversations=1,
        turns=1,
        start_token="t",
    )
    commands.set_snapshot(database, run.id, "hash")
    commands.claim_next_run(database)
    started_at = process.own_start_time()
    commands.record_process(database, run.id, pid=os.getpid(), process_started_at=started_at)
    commands.begin_run(database, run.id)
    reconcile(database)
    assert queries.run(database, run.id).status is RunStatus.RUNNING
    commands.record_process(database, run.id, pid=os.getpid(), process_started_at=started_at - 60)
    reconcile(database)
    run = queries.run(database, run.id)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.KILLED)


def test_a_failure_is_told_in_words(
    database: Database, conversation_ids: list[int], tmp_path: Path, tiny_without_template: Path
) -> None:
    run = start_run(
        database,
        name="no template",
        conversation_ids=conversation_ids,
        config=config_for(tiny_without_template),
        start_token="a",
    )
    run = wait_for(database, run.id, ended)
    assert (run.status, run.error_kind) == (RunStatus.FAILED, ErrorKind.MODEL)
    assert "no chat template" in run.error_text
    assert "Traceback" not in run.error_text


def test_data_without_signal_never_becomes_a_run(database: Database, tiny_llama: Path) -> None:
    message = Message(role=Role.ASSISTANT, content="Hello.")
    ids, _ = commands.add_conversations(database, [Conversation(messages=(message,))])
    with pytest.raises(BadDataError, match="No assistant turn has a score"):
        start_run(
            database,
            name="nothing",
            conversation_ids=ids,
            config=config_for(tiny_llama),
            start_token="a",
        )
    assert queries.runs(database) == []
