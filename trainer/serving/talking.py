"""Whether somebody talks to the chat's server: what can wait, waits for that."""

import httpx2

from db.settings import Settings
from trainer.serving import worker

QUIET_S = 60.0
"""Somebody talks until nobody has asked for so long: the next question should find the model."""

ASK_TIMEOUT_S = 5.0


def somebody_talks(settings: Settings, device: str) -> bool:
    """Return whether a server on this device answers, has just answered, or is on its way.

    One that lives and does not answer is about to come or to go: somebody wanted it.
    """
    seen = worker.look(settings)
    if seen.stage is worker.Stage.OFF:
        return False
    if seen.address is None:
        return device == worker.chat_device()
    if seen.address.device != device:
        return False
    try:
        # The environment's proxies are for the world outside, not for this machine's own server.
        with httpx2.Client(timeout=ASK_TIMEOUT_S, trust_env=False) as client:
            health = client.get(f"{seen.address.url}/health").json()
        return float(health["quiet_s"]) < QUIET_S
    except (httpx2.HTTPError, ValueError, KeyError):
        return True
