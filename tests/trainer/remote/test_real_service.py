"""A real training service (SkyRL, MinT, Tinker): the same run there and here, figure by figure.

Opt-in, since no such service is a part of this project:

    EVERYTURN_TEST_ENDPOINT=http://127.0.0.1:8000 pytest -s tests/trainer/remote/test_real_service.py

EVERYTURN_TEST_ENDPOINT_MODEL names the base model as the service does; it has to be on this machine,
too, and is the embedded one unless said otherwise. EVERYTURN_TEST_ENDPOINT_KEY is the key, if the
service wants one.
"""

import math
import os
from io import StringIO
from pathlib import Path

import pytest
from safetensors.torch import load_file

from db import commands
from db.engine import open_database
from db.records import StepMetric
from db.settings import Settings
from tests.runs import prepare, rows_of, run, scored
from trainer.config import TrainConfig
from trainer.engine.adapter import WEIGHTS_FILE
from trainer.remote.access import access, key_of
from trainer.remote.capabilities import ask
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import Ending, run_folder

URL = os.environ.get("EVERYTURN_TEST_ENDPOINT", "")
MODEL = os.environ.get("EVERYTURN_TEST_ENDPOINT_MODEL", "")
KEY_VARIABLE = "EVERYTURN_TEST_ENDPOINT_KEY"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not URL, reason="opt-in: EVERYTURN_TEST_ENDPOINT names no training service"),
    pytest.mark.timeout(1800),
]

CONVERSATIONS = [
    scored(
        ("What is the capital of France?", "The capital of France is Paris.", 1.0),
        ("How many people live there?", "About two million.", 0.2),
    ),
    scored(
        ("Explain quantum mechanics.", "It is the study of particles at atomic scales.", 0.7),
        ("Can you be more precise?", "No.", -0.5),
    ),
]
PRECISION_NATS = 0.02
"""Services may hold the base model in bf16; a wrong token or a wrong shift is far beyond this."""


class StoppedAfterAStep(FileRecorder):
    """Asks for a stop as soon as an optimiser step was taken."""

    def step(self, row: StepMetric) -> None:
        super().step(row)
        self.stop()


@pytest.fixture
def config(settings: Settings, smollm2: Path) -> TrainConfig:
    """A short run here; the service is known as `real`."""
    database = open_database(settings)
    endpoint = commands.set_endpoint(
        database,
        "real",
        base_url=URL,
        key_variable=KEY_VARIABLE if KEY_VARIABLE in os.environ else "",
    )
    database.close()
    print("offers:", ask(access(endpoint, key_of(endpoint)), timeout_s=30))  # noqa: T201
    return TrainConfig.from_json(
        {
            "preset": "recipe",
            "base_model": MODEL or str(smollm2),
            "device": "cpu",
            "sample_prompts": 1,
            "sample_tokens": 8,
        }
    )


def test_a_run_on_the_service_begins_where_one_here_does_and_brings_an_adapter(
    settings: Settings, config: TrainConfig, tmp_path: Path
) -> None:
    here = run(tmp_path / "here", CONVERSATIONS, config, settings)
    there = run(tmp_path / "there", CONVERSATIONS, config.replace(endpoint="real"), settings)
    for one, other in zip(here, there, strict=True):
        for name in ("logprob_mean", "ratio_mean", "loss_mean", "kl_mean", "clipfrac"):
            figures = f"{one[name]:+.5f} here, {other[name]:+.5f} there"
            print(f"epoch {one['epoch']} turn {one['turn']}  {name:12}  {figures}")  # noqa: T201
            assert math.isfinite(other[name])
        assert (one["tokens"], one["advantage"]) == (other["tokens"], other["advantage"])
        if one["epoch"] == 0:
            assert other["logprob_mean"] == pytest.approx(one["logprob_mean"], abs=PRECISION_NATS)
    weights = load_file(tmp_path / "there" / "adapter" / WEIGHTS_FILE)
    assert all(bool(tensor.isfinite().all()) for tensor in weights.values())
    assert any(bool(tensor.any()) for name, tensor in weights.items() if "lora_B" in name)


def test_a_run_stopped_on_the_service_goes_on_from_the_state_that_it_kept(
    settings: Settings, config: TrainConfig, tmp_path: Path
) -> None:
    config = config.replace(endpoint="real", epochs=3, sample_prompts=0)
    whole = run(tmp_path / "whole", CONVERSATIONS, config, settings)
    folder = prepare(tmp_path / "stopped", CONVERSATIONS, config)
    stopping = StoppedAfterAStep(folder.metrics, output=StringIO())
    assert run_folder(folder, stopping, settings) is Ending.STOPPED
    assert len(rows_of(folder)) == 4
    recorder = FileRecorder(folder.metrics, output=StringIO())
    assert run_folder(folder, recorder, settings) is Ending.FINISHED
    for one, other in zip(whole, rows_of(folder), strict=True):
        figures = f"{one['logprob_mean']:+.5f} whole, {other['logprob_mean']:+.5f} resumed"
        print(f"epoch {one['epoch']} turn {one['turn']}  logprob_mean  {figures}")  # noqa: T201
        assert other["logprob_mean"] == pytest.approx(one["logprob_mean"], abs=PRECISION_NATS)
