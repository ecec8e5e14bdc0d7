"""Several processes train as one: really launched, on the CPU, with gloo between them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from db import commands, queries
from db.engine import open_database
from db.enums import ErrorKind, RunStatus
from db.formats import write
from db.settings import Settings
from tests.runs import run, scored
from trainer.config import TrainConfig
from trainer.runs.folder import RunFolder, sha256_of, write_json, write_text

pytestmark = pytest.mark.slow

CLOSE = 1e-5
"""How far two ranks may be from one: the order of summation differs, nothing else."""

LAUNCHER = (
    *(sys.executable, "-m", "accelerate.commands.launch"),
    *("--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "--no_python"),
)

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(
        ("Where is my order?", "I am sorry, let me look.", 0.8),
        ("And?", "No.", None),
        ("So?", "It is late, I am afraid.", 0.1),
    ),
    scored(("Hello", "What now", -1.0)),
    scored(("Who are you", "A model of the language.", 0.3), ("Really?", "yes", -0.2)),
    scored(("Hello", "Paris has 2.2 million people.", 0.9)),
]
"""Five conversations in steps of two: the last step has work for one rank only."""


def config_for(model: Path, **changes: Any) -> TrainConfig:
    settings = {"device": "cpu", "batch_conversations": 2, "epochs": 2, "sample_tokens": 4}
    return TrainConfig.from_json({"base_model": str(model), "max_kl": 0.0, **settings, **changes})


def launched(*command: str, seconds: float = 150.0) -> subprocess.CompletedProcess[str]:
    """Run a command as two ranks."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return subprocess.run(
        [*LAUNCHER, sys.executable, "-m", *command],
        env=environment, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_same_run(found: Path, expected: Path) -> None:
    """Assert that metrics and adapter agree within `CLOSE`."""
    for row, wanted in zip(rows_of(found), rows_of(expected), strict=True):
        assert row == pytest.approx(wanted, abs=CLOSE, rel=CLOSE)
    weights = [load_file(f / "adapter" / "adapter_model.safetensors") for f in (found, expected)]
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert float((tensor - weights[1][name]).abs().max()) <= CLOSE


@pytest.fixture
def alone(settings: Settings, tiny_llama: Path, tmp_path: Path) -> Path:
    """Folder of the run that one process trains."""
    run(tmp_path / "alone", CONVERSATIONS, config_for(tiny_llama), settings)
    return tmp_path / "alone"


def test_two_ranks_train_stop_fail_and_end_as_one(alone: Path, tmp_path: Path) -> None:
    """One launch plays all scenarios of `tests.two_ranks`, since starting takes the time."""
    for name in ("whole", "stopped", "broken", "full", "killed"):
        (tmp_path / name).mkdir()
        for file in ("config.json", "data.jsonl"):
            (tmp_path / name / file).write_bytes((alone / file).read_bytes())
    config = json.loads((alone / "config.json").read_text())
    changed = ("batch_conversations", "epochs", "sample_tokens", "max_kl")
    options = [
        *("--data", str(alone / "data.jsonl"), "--model", config["base_model"]),
        *("--device", "cpu", *(f"--set={name}={config[name]}" for name in changed)),
    ]
    done = launched("tests.two_ranks", str(tmp_path), *options)
    assert done.returncode != 0, "a killed rank must end the launcher with a failure"
    assert (tmp_path / "found-0.json").exists(), done.stderr
    leader, other = (json.loads((tmp_path / f"found-{i}.json").read_text()) for i in (0, 1))
    assert leader["ranks"] == other["ranks"] == 2

    assert leader["exit_status"] == other["exit_status"] == 0
    out = tmp_path / "command-line"
    assert_same_run(out, alone)
    assert json.loads((out / "samples.json").read_text())[0]["after"] is not None
    assert done.stderr.count("All 6 steps were taken.") == 1

    assert leader["whole"] == other["whole"] == "finished"
    assert_same_run(tmp_path / "whole", alone)

    assert leader["stopped"] == other["stopped"] == "stopped"
    assert leader["steps_before_stop"] == 2 < 6
    assert leader["resumed"] == other["resumed"] == "finished"
    assert_same_run(tmp_path / "stopped", alone)

    assert leader["broken"]["kind"] == other["broken"]["kind"] == "NotFiniteError"
    assert leader["broken"]["text"] == other["broken"]["text"]
    assert "step 3" in leader["broken"]["text"] or "step 4" in leader["broken"]["text"]
    assert "conversation" in leader["broken"]["text"].lower()
    assert "turn" in leader["broken"]["text"]
    assert_same_run(tmp_path / "broken", alone)

    assert leader["full"]["kind"] == "OSError"
    assert other["full"]["kind"] == "TrainerError"
    assert "No space left" in other["full"]["text"]

    assert "connection" in leader["killed"]["text"]
    assert "killed" not in other


def test_a_run_of_the_database_is_resumed_by_two_ranks(
    alone: Path, settings: Settings, tiny_llama: Path
) -> None:
    database = open_database(settings)
    config = config_for(tiny_llama)
    row = commands.create_run(
        database, name="two", config=config.to_json(), base_model=config.base_model,
        conversations=5, turns=10, start_token="two",
    )  # fmt: skip
    folder = RunFolder(settings.run_dir(row.id))
    folder.path.mkdir(parents=True)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(CONVERSATIONS, "native") + "\n")
    commands.set_snapshot(database, row.id, sha256_of(folder.data))
    commands.claim_next_run(database)
    commands.end_run(
        database, row.id, RunStatus.FAILED, error_kind=ErrorKind.KILLED, error_text="gone"
    )
    done = launched("trainer", "resume", str(row.id))
    ended = queries.run(database, row.id)
    assert (done.returncode, ended.status, ended.attempt) == (0, RunStatus.FINISHED, 2), done.stderr
    assert len(queries.turn_metrics(database, row.id)) == len(rows_of(alone))
    assert len(queries.step_metrics(database, row.id)) == 6
    assert_same_run(folder.path, alone)
    database.close()
