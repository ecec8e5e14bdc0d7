"""The process behind `python -m trainer serve`: one server a home, found by its file, ended politely."""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from filelock import FileLock, Timeout

from db.errors import ConflictError
from db.settings import Settings
from trainer.errors import ConfigError
from trainer.runs.process import own_machine, own_start_time
from trainer.serving.address import TOKEN_VARIABLE, Address, announced
from trainer.serving.app import make_app
from trainer.serving.model import ServedModel

HOST = "127.0.0.1"

GRACE_S = 5
"""How long connections may take to end once the model has left."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How to serve.

    Attributes:
        model: Base model: a listed name, hub id or folder.
        port: Port on 127.0.0.1; 0 for a free one.
        device: "auto", "cpu" or "cuda".
        token: What clients must present; None for the environment's, else a new one.
        adapters: Further PEFT folders by name.
        idle_timeout_s: Seconds without a request after which the process ends; 0 for never.
    """

    model: str
    port: int
    device: str
    token: str | None
    adapters: Mapping[str, Path]
    idle_timeout_s: float


def serve(settings: Settings, options: ServeOptions, report: Report) -> None:
    """Serve until a signal, or until nobody has asked for long enough.

    Raises:
        ConflictError: if a server of this home is at work already.
        ConfigError: if the port is taken.
        ModelError: if the model cannot be had.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    with _only_one(settings):
        token = options.token or os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
        report(f"Loading {options.model} ...")
        model = ServedModel.load(
            settings, options.model, device=options.device, adapters=options.adapters
        )
        config = uvicorn.Config("", host=HOST, port=options.port, log_level="warning")
        try:
            socket = config.bind_socket()
        except SystemExit as error:
            raise ConfigError(
                f"port {options.port} is taken",
                where="--port",
                remedy="Choose another one, or 0 for any that is free.",
            ) from error
        socket.listen()  # whoever reads the address below may call at once
        url = f"http://{HOST}:{socket.getsockname()[1]}"
        about = {"pid": os.getpid(), "idle_timeout_s": options.idle_timeout_s}
        server = _Server(make_app(model, token, about), model, options.idle_timeout_s)
        address = Address(
            url=url,
            token=token,
            base_model=model.base_model,
            device=model.device,
            pid=os.getpid(),
            process_started_at=own_start_time(),
            machine=own_machine(),
        )
        with announced(settings, address):
            report(f"{model.base_model} answers on {url}/v1 ({model.device}).")
            if options.token is None and TOKEN_VARIABLE not in os.environ:
                report(f"Token: {token}")
            model.scheduler.start()
            server.run(sockets=[socket])
        report("The server has ended.")


class _Server(uvicorn.Server):
    """uvicorn's server, which ends the model's work first, and ends by itself when it is idle."""

    def __init__(self, app: Any, model: ServedModel, idle_timeout_s: float) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                timeout_graceful_shutdown=GRACE_S,
                lifespan="off",
            )
        )
        self._scheduler = model.scheduler
        self._idle_timeout_s = idle_timeout_s

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Give the device up at once: replies in progress end with a word.

        uvicorn's own would raise the signal again at the end, and the file would stay behind.
        """
        self._scheduler.leave("a run needs it, or the server was ended")
        self.should_exit = True

    async def main_loop(self) -> None:
        """Serve; look now and then whether anybody still asks."""
        watch = asyncio.create_task(self._watch()) if self._idle_timeout_s > 0 else None
        await super().main_loop()
        if watch is not None:
            watch.cancel()
        self._scheduler.leave("the server has ended")

    async def _watch(self) -> None:
        while not self.should_exit:
            quiet_since = self._scheduler.quiet_since
            left = self._idle_timeout_s
            if quiet_since is not None:
                left -= time.monotonic() - quiet_since
            if left <= 0:
                self.should_exit = True
                return
            await asyncio.sleep(left)


@contextmanager
def _only_one(settings: Settings) -> Iterator[None]:
    lock = FileLock(settings.home / ".serve.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ConflictError(
            "a server is at work for this folder already",
            where=str(settings.home),
            remedy=f"Use it (its address is in {settings.serve_file}), or end it first.",
        ) from error
    try:
        yield
    finally:
        lock.release()
