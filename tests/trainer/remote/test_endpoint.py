"""A run on an endpoint: the official SDK over real HTTP gives what this machine gives."""

import asyncio
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tinker.lib.internal_client_holder import _internal_client_holder_thread_singleton

from db import commands
from db.engine import open_database
from db.records import StepMetric
from db.settings import Settings
from tests.protocol.server import KEY, TrainingServer, serving
from tests.runs import prepare, rows_of, run, scored
from trainer.config import TrainConfig
from trainer.errors import EndpointError, EndpointLostError
from trainer.loop import Ending
from trainer.remote import engine
from trainer.remote.access import TYPED_KEY
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder

CONVERSATIONS = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(("Hello", "What now", -1.0), ("And?", "No.", 0.2)),
]


@pytest.fixture
def server(
    settings: Settings, tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TrainingServer]:
    monkeypatch.setenv("CLUSTER_KEY", KEY)
    monkeypatch.setattr(engine, "PAUSES_S", (0.1, 0.1))
    (tmp_path / "kept" / "weights").mkdir(parents=True)
    with serving(TrainingServer(tmp_path / "kept", str(tiny_llama))) as running:
        database = open_database(settings)
        commands.set_endpoint(
            database, "cluster", base_url=running.address, key_variable="CLUSTER_KEY"
        )
        database.close()
        yield running
        deadline = time.monotonic() + 5
        while reporting := sessions_that_report():
            assert time.monotonic() < deadline, reporting
            time.sleep(0.01)


def sessions_that_report() -> list[str]:
    """Return what the SDK goes on telling servers that sessions of this process are alive."""
    tasks = asyncio.all_tasks(_internal_client_holder_thread_singleton.get_loop())
    return [str(task) for task in tasks if "_session_heartbeat" in str(task.get_coro())]


def config_for(model: Path, preset: str = "recipe", **changes: Any) -> TrainConfig:
    return TrainConfig.from_json(
        {
            "preset": preset,
            "base_model": str(model),
            "device": "cpu",
            "sample_prompts": 1,
            "sample_tokens": 4,
            **changes,
        }
    )


def difference(one: Path, other: Path) -> float:
    """Return the relative difference of two adapters."""
    left, right = (
        load_file(path / "adapter" / "adapter_model.safetensors") for path in (one, other)
    )
    assert left.keys() == right.keys()
    gap = sum(float((left[key] - right[key]).square().sum()) for key in left)
    return (gap / sum(float(value.square().sum()) for value in left.values())) ** 0.5


@pytest.mark.parametrize("preset", ["recipe", "standard"])
def test_an_endpoint_gives_the_numbers_of_this_machine(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path, preset: str
) -> None:
    if preset == "standard":
        server.adapter_path = "tinker://{model_id}/{name}"  # as SkyRL calls it
    config = config_for(tiny_llama, preset, epochs=2, batch_conversations=0, warmup_steps=0)
    here = run(tmp_path / "here", CONVERSATIONS, config, settings)
    there = run(tmp_path / "there", CONVERSATIONS, config.replace(endpoint="cluster"), settings)
    assert len(here) == len(there) == 8
    for one, other in zip(here, there, strict=True):
        for name in ("loss_mean", "ratio_mean", "clipfrac", "kl_mean", "logprob_mean"):
            assert other[name] == pytest.approx(one[name], abs=1e-4), name
    assert difference(tmp_path / "here", tmp_path / "there") < 1e-3
    known = {name for name, _ in server.losses}
    assert ("ppo" in known) == (preset == "recipe")  # the standard loss is none that it knows
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and "model" not in path.name]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_a_server_that_starts_anew_costs_no_more_than_the_steps_since_the_checkpoint(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = config_for(tiny_llama, epochs=3, sample_prompts=0)
    run(tmp_path / "here", CONVERSATIONS, config, settings)
    step = TrainingServer.client
    calls = iter(range(100))

    def restarting(self: TrainingServer, model_id: str) -> Any:
        if next(calls) == 6:  # in the middle of the third epoch
            self.restart()
        return step(self, model_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingServer, "client", restarting)
        run(tmp_path / "there", CONVERSATIONS, config.replace(endpoint="cluster"), settings)
    assert difference(tmp_path / "here", tmp_path / "there") < 1e-3


class StoppedAfterAStep(FileRecorder):
    """Asks for a stop as soon as an optimiser step was taken."""

    def step(self, row: StepMetric) -> None:
        super().step(row)
        self.stop()


def test_a_stopped_run_goes_on_from_what_the_endpoint_kept(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = config_for(tiny_llama, epochs=3, sample_prompts=0)
    here = run(tmp_path / "here", CONVERSATIONS, config, settings)
    folder = prepare(tmp_path / "there", CONVERSATIONS, config.replace(endpoint="cluster"))
    stopped = StoppedAfterAStep(folder.metrics, output=StringIO())
    assert run_folder(folder, stopped, settings) is Ending.STOPPED
    assert len(rows_of(folder)) == 4 and not folder.adapter.exists()
    server.restart()  # meanwhile it forgot everything but what it keeps on disk
    recorder = FileRecorder(folder.metrics, output=StringIO())
    assert run_folder(folder, recorder, settings) is Ending.FINISHED
    there = rows_of(folder)
    assert [row["epoch"] for row in there] == [row["epoch"] for row in here]
    assert difference(tmp_path / "here", tmp_path / "there") < 1e-3


def test_limits_of_rate_and_passing_failures_are_waited_out(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    server.statuses = [429, 0, 500, 0, 503]  # the SDK waits longer after each in a row
    config = config_for(tiny_llama, epochs=1, sample_prompts=0, endpoint="cluster")
    assert len(run(tmp_path / "there", CONVERSATIONS, config, settings)) == 4
    assert server.statuses == []


def test_a_call_that_expired_lets_the_run_go_on_from_its_checkpoint(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    server.statuses = [410]
    config = config_for(tiny_llama, epochs=1, sample_prompts=0, endpoint="cluster")
    assert len(run(tmp_path / "there", CONVERSATIONS, config, settings)) == 4


def test_a_wrong_key_is_refused_in_words_that_do_not_hold_it(
    server: TrainingServer,
    settings: Settings,
    tiny_llama: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TYPED_KEY, "tml-wrong-key")
    config = config_for(tiny_llama, endpoint="cluster")
    with pytest.raises(EndpointError, match=r"cluster: its key is refused.*CLUSTER_KEY") as caught:
        run(tmp_path / "there", CONVERSATIONS, config, settings)
    assert "wrong-key" not in str(caught.value)


def test_what_an_endpoint_does_not_offer_is_told_before_anything_is_sent(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    config = config_for(tiny_llama, endpoint="cluster")
    server.context_tokens = 16
    with pytest.raises(EndpointError, match=r"may have 1024 tokens.*sees 16"):
        run(tmp_path / "short", CONVERSATIONS, config, settings)
    server.model = "another/model"
    with pytest.raises(EndpointError, match=r"does not train .*another/model"):
        run(tmp_path / "other", CONVERSATIONS, config, settings)
    assert set(server.seen) == {"/api/v1/get_server_capabilities"}


def test_an_endpoint_that_is_gone_ends_the_run_so_that_it_can_be_resumed(
    server: TrainingServer, settings: Settings, tiny_llama: Path, tmp_path: Path
) -> None:
    server.statuses, server.faulty = [500] * 99, "/api/v1/get_server_capabilities"
    config = config_for(tiny_llama, epochs=1, sample_prompts=0, endpoint="cluster")
    with pytest.raises(EndpointLostError, match="status 500"):
        run(tmp_path / "there", CONVERSATIONS, config, settings)
    assert len(server.statuses) == 96  # three attempts
