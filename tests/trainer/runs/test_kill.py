"""`kill -9` in the middle of a step costs nothing but time: the resumed run has the same bits."""

import os
import signal
import time
from pathlib import Path

import pytest

from db.formats import write
from db.records import StepMetric
from tests.forking import Forks
from tests.killing import PLACES, WHILE_RESUMING
from tests.runs import scored
from trainer.runs.folder import RunFolder
from trainer.runs.metric_files import read_rows

pytestmark = pytest.mark.slow

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(("Where is my order?", "I am sorry, let me look.", 0.8), ("And?", "No.", None)),
    scored(("Hello", "What now", -1.0), ("Are you there?", "Yes.", 0.2)),
    scored(("Who are you", "A model of the language.", 0.3), ("Really?", "yes", -0.2)),
]

SETTINGS = {
    "epochs": 4,
    "batch_conversations": 2,
    "token_budget": 48,  # one conversation a pass, so that a step has a middle
    "max_kl": 0,
    "sample_prompts": 1,
    "sample_tokens": 4,
}

KEPT_FILES = ("adapter/adapter_model.safetensors", "adapter/adapter_config.json", "metrics.jsonl")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def options(tiny_llama: Path, work: Path) -> list[str]:
    (work / "data.jsonl").write_text(write(CONVERSATIONS, "native"))
    pairs = [f"--set={name}={value}" for name, value in SETTINGS.items()]
    return ["--data", str(work / "data.jsonl"), "--model", str(tiny_llama), "--device=cpu", *pairs]


def command(forks: Forks, *arguments: str, log: Path, hook: tuple[str, str] | None = None) -> int:
    """Carry out a command of the trainer in a process of its own; return how that ended."""
    pid = forks.start([*arguments], log=log, environment={"HF_HUB_OFFLINE": "1"}, hook=hook)
    return forks.wait(pid)


@pytest.fixture(scope="module")
def whole(work: Path, options: list[str], forks: Forks) -> Path:
    """Folder of the uninterrupted run."""
    status = command(forks, "train", *options, "--out", str(work / "whole"), log=work / "log")
    assert status == 0, (work / "log").read_text()
    return work / "whole"


def assert_same_bits(found: Path, expected: Path) -> None:
    for name in KEPT_FILES:
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name
    losses = [
        [row.loss for row in read_rows(out / "steps.jsonl", StepMetric)]
        for out in (found, expected)
    ]
    assert losses[0] == losses[1]
    allowed = {".lock", "adapter", "checkpoints", "config.json", "data.jsonl"}
    allowed |= {"metrics.jsonl", "steps.jsonl", "samples.json", "changes.json"}
    allowed |= {"summary.json", "tensorboard"}
    assert {path.name for path in found.iterdir()} == allowed
    assert all(path.name.isdigit() for path in RunFolder(found).checkpoints.iterdir())


@pytest.mark.parametrize("place", PLACES)
def test_wherever_a_run_is_killed_it_resumes_to_the_same_bits(
    whole: Path, options: list[str], forks: Forks, tmp_path: Path, place: str
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    killed = command(
        forks, "train", *options, "--out", str(out), log=log, hook=("tests.killing", place)
    )
    assert killed == -signal.SIGKILL, log.read_text()
    if place in WHILE_RESUMING:
        hook = ("tests.killing", f"{place}, resuming")
        assert command(forks, "resume", str(out), log=log, hook=hook) == -signal.SIGKILL
    assert command(forks, "resume", str(out), log=log) == 0, log.read_text()
    assert_same_bits(out, whole)


def test_a_process_killed_from_outside_resumes_to_the_same_bits(
    whole: Path, options: list[str], forks: Forks, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    metrics = out / "metrics.jsonl"
    doomed = forks.start(["train", *options, "--out", str(out)], log=log)
    deadline = time.monotonic() + 120
    # Seven rows an epoch: the ninth is written in the middle of the second epoch's first step.
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < 9:
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.002)
    os.kill(doomed, signal.SIGKILL)
    assert forks.wait(doomed) == -signal.SIGKILL
    assert not (out / "adapter").exists()
    assert command(forks, "resume", str(out), log=log) == 0, log.read_text()
    assert_same_bits(out, whole)
