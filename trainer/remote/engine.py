"""How a run on an endpoint begins, and how it goes on when the endpoint was lost."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from db.settings import Settings
from trainer.catalog import find_model
from trainer.config import TrainConfig
from trainer.engines import Engine
from trainer.errors import EndpointLostError
from trainer.models import load_tokenizer
from trainer.remote.access import Access, find_endpoint, take_access
from trainer.remote.capabilities import ask, choose, require_length
from trainer.remote.session import Session
from trainer.runs.recorder import Recorder

T = TypeVar("T")

PAUSES_S = (5.0, 30.0, 120.0, 300.0)
"""How long a run waits before it goes on from its last checkpoint, each time it lost the endpoint."""

ASK_TIMEOUT_S = 30.0


def open_access(settings: Settings, config: TrainConfig) -> Access:
    """Return the endpoint that a run is sent to, with its key.

    Raises:
        ConfigError: if there is no such endpoint.
        EndpointError: if the key cannot be sent.
    """
    return take_access(find_endpoint(settings, config))


@contextmanager
def open_client(access: Access, config: TrainConfig, settings: Settings) -> Iterator[Engine]:
    """Ask the endpoint what it offers, then hold a session with it while the block runs.

    Raises:
        EndpointError: if it refuses, lacks the base model, or cannot see turns of that length.
        EndpointLostError: if it does not answer.
    """
    where = access.endpoint.name
    offers = ask(access, timeout_s=ASK_TIMEOUT_S)
    offer = choose(offers, settings, config.base_model, where)
    require_length(offer, config.max_context_tokens, where)
    tokenizer = load_tokenizer(settings, config.base_model)
    session = Session(access)
    # Only after the session has found the SDK, which is installed for such runs alone.
    from trainer.remote.client import RemoteClient  # noqa: PLC0415

    try:
        yield RemoteClient(
            session,
            access,
            tokenizer,
            base_model=offer.name,
            known_as=find_model(settings, config.base_model).hub_id or config.base_model,
            rank=config.lora_rank,
            seed=config.seed,
        )
    finally:
        session.close()


def persistently(attempt: Callable[[], T], recorder: Recorder, *, stopped: T) -> T:
    """Carry an attempt out; where it loses its endpoint, wait and let it go on from its checkpoint.

    Args:
        attempt: Trains, going on from the last checkpoint.
        recorder: Told what is waited for; says whether to stop.
        stopped: What is returned after a stop.

    Raises:
        EndpointLostError: if the endpoint is lost once more than there are pauses.
    """
    for pause_s in PAUSES_S:
        try:
            return attempt()
        except EndpointLostError as error:
            recorder.note(f"{error} It goes on from the last checkpoint in {pause_s:.0f} s.")
            until = time.monotonic() + pause_s
            while (left := until - time.monotonic()) > 0:
                if recorder.progress(0.0, f"waiting for {error.where}"):
                    return stopped
                time.sleep(min(1.0, left))
    return attempt()
