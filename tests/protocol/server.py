"""A training service that speaks the Tinker protocol over HTTP, computed by the local engine.

It does what the SDK's own source asks of one: futures that are retrieved later, calls told apart
by their sequence number, states that load into new weights only. Faults are switched on by tests.
"""

import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from db.errors import EveryTurnError
from trainer.engine.client import SamplingClient, ServiceClient, TrainingClient
from trainer.engine.types import AdamParams, Datum, ModelInput, SamplingParams

KEY = "tml-secret-of-the-tests"


@dataclass
class TrainingServer:
    """What the service knows, and the faults that are switched on.

    Attributes:
        folder: Where states and adapters are kept; they survive `restart`.
        model: Name of the one base model.
        tells_metrics: Whether it reports figures of its own, as some services do.
        adapter_path: What it calls an adapter that it saved.
        statuses: Answered, one a request and before anything else, to what begins with `faulty`; 0
            lets one request through.
        seen: Path of every request.
    """

    folder: Path
    model: str
    context_tokens: int | None = 4096
    tells_metrics: bool = False
    adapter_path: str = "tinker://{model_id}/sampler_weights/{name}"
    faulty: str = "/api/v1/retrieve_future"
    statuses: list[int] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    losses: list[tuple[str, Any]] = field(default_factory=list)
    address: str = ""

    def __post_init__(self) -> None:
        """Start with nothing."""
        self._numbers = count()
        self._thread = ThreadPoolExecutor(1)  # everything is computed in the order it came
        self.restart()

    def restart(self) -> None:
        """Forget weights and calls, as a server that starts anew."""
        self.models: dict[str, TrainingClient] = {}
        self.used: set[str] = set()
        self.samplers: dict[str, SamplingClient] = {}
        self.futures: dict[str, Future[Any]] = {}

    def new_id(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"

    def submit(self, call: Callable[[], dict[str, Any]], key: str = "") -> dict[str, Any]:
        name = key or self.new_id("call")
        if name not in self.futures:
            self.futures[name] = self._thread.submit(call)
        return {"request_id": name}

    def submit_numbered(
        self, body: dict[str, Any], call: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Submit a call of some weights; the same sequence number again is the same call."""
        self.used.add(body["model_id"])
        return self.submit(call, f"{body['model_id']}.{body['seq_id']}")

    def client(self, model_id: str) -> TrainingClient:
        if model_id not in self.models:
            raise HTTPException(404, "Model not found")
        return self.models[model_id]


def datums(body: dict[str, Any]) -> list[Datum]:
    return [
        Datum(
            ModelInput.from_ints([t for c in one["model_input"]["chunks"] for t in c["tokens"]]),
            {name: value["data"] for name, value in one["loss_fn_inputs"].items()},
        )
        for one in body["data"]
    ]


def build(server: TrainingServer) -> FastAPI:
    """Return the application."""
    app = FastAPI()
    _add_checks(app, server)
    _add_sessions(app, server)
    _add_training(app, server)
    _add_states(app, server)
    _add_sampling(app, server)
    _add_downloads(app, server)
    return app


def _add_checks(app: FastAPI, server: TrainingServer) -> None:
    """Answer with the faults that are switched on, and let in only who has the key."""

    @app.middleware("http")
    async def check(request: Request, go_on: Any) -> Response:
        server.seen.append(request.url.path)
        if request.url.path.startswith(server.faulty) and server.statuses:
            status = server.statuses.pop(0)
            if status:
                return JSONResponse({"detail": "a fault"}, status_code=status)
        if request.url.path != "/api/v1/healthz" and request.headers.get("x-api-key") != KEY:
            return JSONResponse({"detail": "who are you?"}, status_code=401)
        return await go_on(request)


def _add_sessions(app: FastAPI, server: TrainingServer) -> None:
    """Say what can be trained here, open sessions, hand over what was computed."""

    @app.post("/api/v1/client/config")
    def config() -> dict[str, Any]:
        return {"parallel_fwdbwd_chunks": False}

    @app.get("/api/v1/healthz")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/api/v1/get_server_capabilities")
    def capabilities() -> dict[str, Any]:
        one = {"model_name": server.model, "max_context_length": server.context_tokens}
        return {"supported_models": [one]}

    @app.post("/api/v1/create_session")
    def session() -> dict[str, str]:
        return {"session_id": server.new_id("session"), "type": "create_session"}

    @app.post("/api/v1/session_heartbeat")
    def heartbeat() -> dict[str, str]:
        return {"type": "session_heartbeat"}

    @app.post("/api/v1/retrieve_future")
    def retrieve(body: dict[str, Any]) -> Any:
        future = server.futures.get(body["request_id"])
        if future is None:
            raise HTTPException(410, "Promise expired")
        try:
            return future.result(timeout=5)
        except TimeoutError:
            return JSONResponse({"queue_state": "active"}, status_code=408)
        except EveryTurnError as error:
            return {"error": str(error), "category": "user"}


def _add_training(app: FastAPI, server: TrainingServer) -> None:
    """Create weights and train them."""
    service = ServiceClient(device="cpu")

    @app.post("/api/v1/create_model")
    def create(body: dict[str, Any]) -> dict[str, Any]:
        lora = body["lora_config"]

        def call() -> dict[str, Any]:
            model_id = server.new_id("model")
            server.models[model_id] = service.create_lora_training_client(
                server.model,
                rank=lora["rank"],
                seed=lora.get("seed"),
                train_unembed=lora["train_unembed"],
            )
            return {"model_id": model_id, "type": "create_model"}

        return server.submit(call)

    @app.post("/api/v1/forward")
    @app.post("/api/v1/forward_backward")
    def run(body: dict[str, Any], request: Request) -> dict[str, Any]:
        client, backward = server.client(body["model_id"]), request.url.path.endswith("backward")
        given = body["forward_backward_input" if backward else "forward_input"]
        asked = client.forward_backward if backward else client.forward

        def call() -> dict[str, Any]:
            server.losses.append((given["loss_fn"], given.get("loss_fn_config")))
            output = asked(datums(given), given["loss_fn"], given.get("loss_fn_config")).result()
            outputs = [
                {"logprobs": {"data": list(o["logprobs"].data), "dtype": "float32"}}
                for o in output.loss_fn_outputs
            ]
            return {
                "loss_fn_output_type": output.loss_fn_output_type,
                "loss_fn_outputs": outputs,
                "metrics": output.metrics if server.tells_metrics else {},
            }

        return server.submit_numbered(body, call)

    @app.post("/api/v1/optim_step")
    def step(body: dict[str, Any]) -> dict[str, Any]:
        client = server.client(body["model_id"])

        def call() -> dict[str, Any]:
            return {
                "metrics": client.optim_step(AdamParams(**body["adam_params"])).result().metrics
            }

        return server.submit_numbered(body, call)


def _add_states(app: FastAPI, server: TrainingServer) -> None:
    """Save weights with what the optimiser knows, load them into new ones, and say what they are."""

    @app.post("/api/v1/get_info")
    def info(body: dict[str, Any]) -> dict[str, Any]:
        return {"model_id": body["model_id"], "model_data": {"model_name": server.model}}

    @app.post("/api/v1/save_weights")
    def save(body: dict[str, Any]) -> dict[str, Any]:
        client = server.client(body["model_id"])

        def call() -> dict[str, Any]:
            client.save_state(str(server.folder / "weights" / body["path"])).result()
            return {"path": f"tinker://{body['model_id']}/weights/{body['path']}"}

        return server.submit_numbered(body, call)

    @app.post("/api/v1/load_weights")
    def load(body: dict[str, Any]) -> dict[str, Any]:
        client, folder = server.client(body["model_id"]), server.folder / "weights"
        if body["model_id"] in server.used:
            raise HTTPException(400, "LoadWeights is not permitted here")
        state = folder / body["path"].rpartition("/")[2]
        if not state.is_dir():
            raise HTTPException(404, "Checkpoint not found")

        def call() -> dict[str, Any]:
            loaded = client.load_state_with_optimizer if body["optimizer"] else client.load_state
            loaded(str(state)).result()
            return {"path": body["path"], "type": "load_weights"}

        return server.submit_numbered(body, call)


def _add_sampling(app: FastAPI, server: TrainingServer) -> None:
    """Save adapters, and sample with them."""

    @app.post("/api/v1/save_weights_for_sampler")
    def save_adapter(body: dict[str, Any]) -> dict[str, Any]:
        client = server.client(body["model_id"])

        def call() -> dict[str, Any]:
            if body.get("path") is None:
                name = server.new_id("sampler")
                server.samplers[name] = client.save_weights_and_get_sampling_client()
                return {"sampling_session_id": name}
            client.save_weights_for_sampler(str(server.folder / body["path"])).result()
            named = {"model_id": body["model_id"], "name": body["path"]}
            return {"path": server.adapter_path.format(**named)}

        return server.submit_numbered(body, call)

    @app.post("/api/v1/asample")
    def sample(body: dict[str, Any]) -> dict[str, Any]:
        sampler = server.samplers[body["sampling_session_id"]]
        tokens = [token for chunk in body["prompt"]["chunks"] for token in chunk["tokens"]]
        params = body["sampling_params"]

        def call() -> dict[str, Any]:
            answer = sampler.sample(
                ModelInput.from_ints(tokens),
                body["num_samples"],
                SamplingParams(max_tokens=params["max_tokens"], temperature=params["temperature"]),
                bool(body.get("prompt_logprobs")),
            ).result()
            return {
                "sequences": [
                    {
                        "tokens": list(one.tokens),
                        "logprobs": list(one.logprobs),
                        "stop_reason": one.stop_reason,
                    }
                    for one in answer.sequences
                ],
                "prompt_logprobs": answer.prompt_logprobs,
                "type": "sample",
            }

        return server.submit(call)


def _add_downloads(app: FastAPI, server: TrainingServer) -> None:
    """Hand out saved adapters as archives."""

    @app.get("/api/v1/training_runs/{model_id}/checkpoints/{path:path}/archive")
    def archive(model_id: str, path: str) -> RedirectResponse:
        return RedirectResponse(f"{server.address}/download/{path.rpartition('/')[2]}", 302)

    @app.get("/download/{name}")
    def download(name: str) -> Response:
        packed = BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            tar.add(server.folder / name, arcname=".")
        return Response(packed.getvalue(), media_type="application/octet-stream")


@contextmanager
def serving(server: TrainingServer) -> Iterator[TrainingServer]:
    """Serve on a free port of this machine while the block runs."""
    running = uvicorn.Server(
        uvicorn.Config(build(server), host="127.0.0.1", port=0, log_level="error")
    )
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        thread.join(0.02)
    port = running.servers[0].sockets[0].getsockname()[1]
    server.address = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        running.should_exit = True
        thread.join(5)
