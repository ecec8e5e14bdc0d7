"""Several processes train as one: really launched, on the CPU, with gloo between them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from db import commands, queries
from db.engine import Database, open_database
from db.enums import ErrorKind, RunStatus
from db.formats import write
from db.settings import read_settings
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What two ranks did in one launch: the scenarios of `tests.two_ranks`, one after the other.

    Attributes:
        folder: Where each scenario's run has a folder of its own.
        alone: Folder of the same run, trained by one process.
        leader: What the first rank found.
        other: What the second one found.
        returncode: The launcher's, once a rank was killed.
        output: What it printed.
        database: Where the run with the id `run_id` is.
    """

    folder: Path
    alone: Path
    leader: dict[str, Any]
    other: dict[str, Any]
    returncode: int
    output: str
    database: Database
    run_id: int


@pytest.fixture(scope="module")
def played(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Launch once for all tests here, since starting takes most of the time."""
    folder = tmp_path_factory.mktemp("ranks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERYTURN_HOME", str(folder / "home"))
        patch.delenv("DATABASE_URL", raising=False)
        settings, alone = read_settings(), folder / "alone"
        config = config_for(tiny_llama)
        run(alone, CONVERSATIONS, config, settings)
        for name in ("stopped", "broken", "full", "killed"):
            (folder / name).mkdir()
            for file in ("config.json", "data.jsonl"):
                (folder / name / file).write_bytes((alone / file).read_bytes())
        database = open_database(settings)
        run_id = failed_run(database, config)
        done = launched(folder, run_id, alone, config)
        found = [folder / f"found-{rank}.json" for rank in (0, 1)]
        assert all(file.exists() for file in found), done.stderr
        leader, other = (json.loads(file.read_text()) for file in found)
        yield Played(
            folder=folder, alone=alone, leader=leader, other=other, returncode=done.returncode,
            output=done.stderr, database=database, run_id=run_id,
        )  # fmt: skip
        database.close()


def launched(
    folder: Path, run_id: int, alone: Path, config: TrainConfig
) -> subprocess.CompletedProcess[str]:
    """Run `tests.two_ranks` as two ranks."""
    changed = ("batch_conversations", "epochs", "sample_tokens", "max_kl")
    values = config.to_json()
    options = [
        *("--data", str(alone / "data.jsonl"), "--model", config.base_model, "--device", "cpu"),
        *(f"--set={name}={values[name]}" for name in changed),
    ]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return subprocess.run(
        [*LAUNCHER, sys.executable, "-m", "tests.two_ranks", str(folder), str(run_id), *options],
        env=environment, capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip


def failed_run(database: Database, config: TrainConfig) -> int:
    """Return the id of a run of the database that failed before its first step."""
    row = commands.create_run(
        database, name="two", config=config.to_json(), base_model=config.base_model,
        conversations=5, turns=10, start_token="two",
    )  # fmt: skip
    folder = RunFolder(database.settings.run_dir(row.id))
    folder.path.mkdir(parents=True)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(CONVERSATIONS, "native") + "\n")
    commands.set_snapshot(database, row.id, sha256_of(folder.data))
    commands.claim_next_run(database)
    commands.end_run(
        database, row.id, RunStatus.FAILED, error_kind=ErrorKind.KILLED, error_text="gone"
    )
    return row.id


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


def test_two_ranks_train_what_one_process_trains_and_tell_and_sample_it_once(
    played: Played,
) -> None:
    assert played.leader["ranks"] == played.other["ranks"] == 2
    assert played.leader["exit_status"] == played.other["exit_status"] == 0
    out = played.folder / "command-line"
    assert_same_run(out, played.alone)
    assert json.loads((out / "samples.json").read_text())[0]["after"] is not None
    assert played.output.count("All 6 steps were taken.") == 2, "once each: train and resume"


def test_a_stop_ends_both_ranks_at_one_step_from_which_they_go_on(played: Played) -> None:
    assert played.leader["stopped"] == played.other["stopped"] == "stopped"
    assert played.leader["steps_before_stop"] == 2 < 6
    assert played.leader["resumed"] == played.other["resumed"] == "finished"
    assert_same_run(played.folder / "stopped", played.alone)


def test_what_is_not_finite_on_one_rank_is_named_by_both_and_can_be_resumed(
    played: Played,
) -> None:
    leader, other = played.leader["broken"], played.other["broken"]
    assert leader["kind"] == other["kind"] == "NotFiniteError"
    assert leader["text"] == other["text"]
    assert "step 3" in leader["text"] or "step 4" in leader["text"]
    assert "conversation" in leader["text"].lower()
    assert "turn" in leader["text"]
    assert_same_run(played.folder / "broken", played.alone)


def test_a_full_disk_of_the_leader_ends_the_other_rank_with_its_words(played: Played) -> None:
    assert played.leader["full"]["kind"] == "OSError"
    assert played.other["full"]["kind"] == "TrainerError"
    assert "No space left" in played.other["full"]["text"]


def test_a_killed_rank_ends_the_other_one_and_the_launcher(played: Played) -> None:
    assert played.returncode != 0, "a killed rank must end the launcher with a failure"
    assert "connection" in played.leader["killed"]["text"]
    assert "killed" not in played.other


def test_a_run_of_the_database_is_resumed_by_two_ranks(played: Played) -> None:
    database, ended = played.database, queries.run(played.database, played.run_id)
    assert played.leader["resume_status"] == played.other["resume_status"] == 0, played.output
    assert (ended.status, ended.attempt) == (RunStatus.FINISHED, 2), ended.error_text
    assert len(queries.turn_metrics(database, ended.id)) == len(rows_of(played.alone))
    assert len(queries.step_metrics(database, ended.id)) == 6
    assert_same_run(database.settings.run_dir(ended.id), played.alone)
