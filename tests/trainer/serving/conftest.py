"""The endpoint on a tiny model with a trained adapter, reached as users reach it: the openai client."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from openai import OpenAI

from db.settings import Settings
from tests.conftest import TinyModels
from trainer.engine.client import ServiceClient, TrainingClient
from trainer.engine.types import AdamParams, Datum, ModelInput
from trainer.runs.folder import RunFolder
from trainer.serving.app import make_app
from trainer.serving.model import ServedModel

TOKEN = "a token of this test"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server in a thread.

    Attributes:
        settings: Its home; adapters of runs lie there.
        model: What answers.
        url: Where.
        trainer: The client that trained `run-7`, with the adapter as it was saved.
    """

    settings: Settings
    model: ServedModel
    url: str
    trainer: TrainingClient

    def client(self, token: str = TOKEN) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=token, max_retries=0, timeout=60)

    def wait_until_quiet(self) -> None:
        """Wait for the end of all work; fails if it goes on."""
        deadline = time.monotonic() + 10
        while self.model.scheduler.active or self.model.scheduler.waiting:
            assert time.monotonic() < deadline, "generation goes on"
            time.sleep(0.01)


def train_adapter(settings: Settings, base: Path, run_id: int, *, seed: int = 3) -> TrainingClient:
    """Train an adapter that differs clearly from the base, and leave it where a run would."""
    service = ServiceClient(device="cpu", settings=settings)
    client = service.create_lora_training_client(
        str(base), rank=4, seed=seed, train_unembed=False, alpha=8.0
    )
    tokens = [7, 30, 41, 52, 12, 60, 61, 62, 63]
    inputs: dict[str, Any] = {"target_tokens": tokens[1:], "weights": [1.0] * 8}
    datum = Datum(ModelInput.from_ints(tokens[:-1]), inputs)
    for _ in range(3):
        client.forward_backward([datum], "cross_entropy").result()
        client.optim_step(AdamParams(learning_rate=0.05)).result()
    folder = RunFolder(settings.run_dir(run_id))
    folder.path.mkdir(parents=True, exist_ok=True)
    client.save_weights_for_sampler(str(folder.adapter)).result()
    return client


@pytest.fixture(scope="package")
def endpoint(
    tmp_path_factory: pytest.TempPathFactory, tiny_models: TinyModels
) -> Iterator[Endpoint]:
    """A server with the base model and `run-7`; tests may add adapters under other numbers."""
    home = tmp_path_factory.mktemp("serving")
    settings = Settings(home=home, database_url=f"sqlite:///{home / 'everyturn.db'}")
    base = tiny_models("llama")
    trainer = train_adapter(settings, base, 7)
    model = ServedModel.load(settings, str(base), device="cpu")
    config = uvicorn.Config(make_app(model, TOKEN, {}), port=0, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    model.scheduler.start()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    yield Endpoint(settings, model, f"http://127.0.0.1:{socket.getsockname()[1]}", trainer)
    server.should_exit = True
    model.scheduler.leave("the tests are over")
    thread.join()
