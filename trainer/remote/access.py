"""Which endpoint a run means, and the key for it, which is never stored. No torch, no SDK."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from db import queries
from db.engine import open_database
from db.errors import NotFoundError
from db.records import Endpoint
from db.settings import Settings
from trainer.config import TrainConfig
from trainer.errors import ConfigError, EndpointError

TYPED_KEY = "EVERYTURN_ENDPOINT_KEY"
"""Variable that carries a key typed for one start into the run's process, and no further."""

DEVICE = "remote:"
"""What the device of a run on an endpoint begins with; the endpoint's name follows."""


@dataclass(frozen=True, slots=True)
class Access:
    """An endpoint and its key."""

    endpoint: Endpoint
    key: str = field(repr=False)

    def redact(self, text: str) -> str:
        """Return a text that came from outside without the key, should it be in there."""
        return text.replace(self.key, "***") if self.key else text


def device_name(name: str) -> str:
    """Return the device of a run on this endpoint, so that it holds none of this machine."""
    return f"{DEVICE}{name}"


def find_endpoint(settings: Settings, config: TrainConfig) -> Endpoint:
    """Return the endpoint that a run is sent to.

    Raises:
        ConfigError: if there is none of that name (any more).
    """
    database = open_database(settings)
    try:
        return queries.endpoint(database, config.endpoint)
    except NotFoundError as error:
        raise ConfigError(error.what, where="setting endpoint", remedy=error.remedy) from error
    finally:
        database.close()


def has_key(endpoint: Endpoint) -> bool:
    """Return whether the environment holds the key that the endpoint's settings name."""
    return bool(key_of(endpoint))


def key_of(endpoint: Endpoint) -> str:
    """Return the key that the environment holds for an endpoint; empty if there is none."""
    return os.environ.get(endpoint.key_variable, "") if endpoint.key_variable else ""


def take_access(endpoint: Endpoint) -> Access:
    """Return the endpoint with its key: the one typed for this start, else the environment's.

    A typed key leaves the environment, so that no child process inherits it.
    """
    typed = os.environ.pop(TYPED_KEY, "")
    return access(endpoint, typed or key_of(endpoint))


def access(endpoint: Endpoint, key: str) -> Access:
    """Return the endpoint with a key.

    Raises:
        EndpointError: if the key cannot be sent; it is not told.
    """
    key = key.strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise EndpointError(
            "its key holds spaces, line ends or letters that no key has",
            where=endpoint.name,
            remedy="Copy the key again, without anything around it.",
        )
    return Access(endpoint, key)


def child_variables(key: str) -> Mapping[str, str]:
    """Return what a run's process finds in its environment for a typed key."""
    return {TYPED_KEY: key} if key else {}
