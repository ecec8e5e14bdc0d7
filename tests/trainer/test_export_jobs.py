"""Exports in the background: two clicks make one, a kill leaves nothing half, the token stays away."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from db.settings import Settings
from trainer.__main__ import main
from trainer.export import jobs
from trainer.export.jobs import Export, Job, JobState, export_job, start_export, start_upload
from trainer.export.usage import Form, GgufType
from trainer.runs.folder import RunFolder
from trainer.runs.process import Mark

TOKEN = "hf_only_for_this_test"


@pytest.fixture
def run(settings: Settings, tiny_llama: Path, tmp_path: Path) -> RunFolder:
    """A finished run of a tiny model."""
    data = tmp_path / "data.json"
    data.write_text(json.dumps([{"turns": [{"user": "Hi", "assistant": "Yes.", "reward": 1.0}]}]))
    out = tmp_path / "run"
    arguments = ["train", "--data", str(data), "--model", str(tiny_llama), "--device", "cpu"]
    arguments += ["--preset", "recipe", "--set", "sample_prompts=0", "--out", str(out)]
    arguments += ["--set", "credit=immediate"]
    assert main(arguments) == 0
    return RunFolder(out)


def ended(look: Callable[[], Job]) -> Job:
    deadline = time.monotonic() + 120
    while (job := look()).state is JobState.UNDER_WAY and time.monotonic() < deadline:
        time.sleep(0.1)
    return job


def pid_of(wanted: Export) -> int:
    return Mark.from_text((wanted.folder.parent / f"{wanted.name}.export.process").read_text()).pid


def test_a_killed_export_offers_nothing_and_the_next_try_makes_it_once_for_two_clicks(
    run: RunFolder, settings: Settings
) -> None:
    wanted = Export(run, Form.GGUF_ADAPTER, GgufType.F16)
    assert export_job(wanted).state is JobState.NONE
    start_export(settings, wanted)
    first = pid_of(wanted)
    os.kill(first, 9)
    job = ended(lambda: export_job(wanted))
    assert job.state is JobState.FAILED and "killed" in job.message
    assert not wanted.folder.exists()
    start_export(settings, wanted)
    second = pid_of(wanted)
    start_export(settings, wanted)
    assert pid_of(wanted) == second != first
    job = ended(lambda: export_job(wanted))
    assert job.state is JobState.DONE, job
    assert "Loaded again and compared" in job.message
    assert (wanted.folder / "adapter.gguf").is_file()
    assert not list(wanted.folder.parent.glob(".*.tmp"))


def test_a_failure_is_told_in_its_own_words(run: RunFolder, settings: Settings) -> None:
    (run.adapter / "adapter_model.safetensors").write_bytes(b"damaged")
    wanted = Export(run, Form.ADAPTER)
    start_export(settings, wanted)
    job = ended(lambda: export_job(wanted))
    assert job.state is JobState.FAILED
    assert "cannot be read" in job.message and not job.message.startswith("error")


def test_a_token_is_on_no_command_line_and_in_no_file(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wanted = Export(RunFolder(tmp_path / "run"), Form.ADAPTER)
    wanted.folder.mkdir(parents=True)
    (wanted.folder / "README.md").write_text("A card.")
    started: list[list[str]] = []
    popen = jobs.subprocess.Popen

    def watched(command: list[str], **options: object) -> psutil.Popen:
        started.append([*command, str(options["env"])])
        return popen(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(jobs.subprocess, "Popen", watched)
    start_upload(settings, wanted, "owner/name", TOKEN, public=False)
    job = ended(lambda: jobs.upload_job(wanted))
    assert job.state is JobState.FAILED and "cannot be reached" in job.message
    assert started and all(TOKEN not in word for words in started for word in words)
    written = [path for path in wanted.folder.parent.rglob("*") if path.is_file()]
    assert all(TOKEN.encode() not in path.read_bytes() for path in written)
