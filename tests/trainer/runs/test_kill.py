"""`kill -9` in the middle of a step costs nothing but time: the resumed run has the same bits."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from db.formats import write
from tests.killing import PLACES
from tests.runs import scored
from trainer.runs.folder import RunFolder

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


ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONPATH": str(Path(__file__).parents[3]),
}


def python(*arguments: str) -> subprocess.Popen[str]:
    """Start a module of ours as a process."""
    command = [sys.executable, "-m", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, **quiet)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def options(tiny_llama: Path, work: Path) -> list[str]:
    (work / "data.jsonl").write_text(write(CONVERSATIONS, "native"))
    pairs = [f"--set={name}={value}" for name, value in SETTINGS.items()]
    return ["--data", str(work / "data.jsonl"), "--model", str(tiny_llama), "--device=cpu", *pairs]


@pytest.fixture(scope="module")
def whole(work: Path, options: list[str]) -> Path:
    """Folder of the uninterrupted run; beside it those of runs killed at each of `PLACES`."""
    done = python("tests.killing", str(work), *options)
    _, words = done.communicate(timeout=270)
    assert done.returncode == 0, words
    return work / "whole"


def assert_same_bits(found: Path, expected: Path) -> None:
    for name in KEPT_FILES:
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name
    allowed = {".lock", "adapter", "checkpoints", "config.json", "data.jsonl"}
    allowed |= {"metrics.jsonl", "samples.json", "summary.json"}
    assert {path.name for path in found.iterdir()} == allowed
    assert all(path.name.isdigit() for path in RunFolder(found).checkpoints.iterdir())


@pytest.mark.parametrize("place", PLACES)
def test_wherever_a_run_is_killed_it_resumes_to_the_same_bits(whole: Path, place: str) -> None:
    assert_same_bits(whole.with_name(place), whole)


def test_a_process_killed_from_outside_resumes_to_the_same_bits(
    whole: Path, options: list[str], tmp_path: Path
) -> None:
    out, metrics = tmp_path / "out", tmp_path / "out" / "metrics.jsonl"
    doomed = python("trainer", "train", *options, "--out", str(out))
    deadline = time.monotonic() + 120
    # Seven rows an epoch: the ninth is written in the middle of the second epoch's first step.
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < 9:
        assert doomed.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    assert not (out / "adapter").exists()
    resumed = python("trainer", "resume", str(out))
    _, words = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, words
    assert_same_bits(out, whole)
