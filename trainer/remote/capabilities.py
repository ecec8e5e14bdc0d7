"""What an endpoint offers, asked over plain HTTP before anything is sent. No torch, no SDK."""

import json
import time
from dataclasses import dataclass
from typing import Any

import httpx2

from db.settings import Settings
from trainer.catalog import find_model
from trainer.errors import EndpointError, EndpointLostError, shortened
from trainer.remote.access import Access

PATH = "/api/v1/get_server_capabilities"

LARGEST_BYTES = 10**6
"""No list of base models is longer."""

UNREACHABLE = (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError)
"""What the client raises where nobody answers, or nobody can: not every address has a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A base model that an endpoint trains.

    Attributes:
        name: What the endpoint calls it.
        context_tokens: Most tokens that it can see; None if that is not told.
    """

    name: str
    context_tokens: int | None


def ask(access: Access, *, timeout_s: float) -> list[Offer]:
    """Return the base models that an endpoint trains.

    Raises:
        EndpointLostError: if it does not answer.
        EndpointError: if it refuses, or answers something else.
    """
    where = access.endpoint.name
    try:
        status, text = _get(access, timeout_s)
    except UNREACHABLE as error:
        raise EndpointLostError(
            f"it does not answer at {access.endpoint.base_url} "
            f"({access.redact(shortened(str(error) or type(error).__name__))})",
            where=where,
            remedy="Check the address under Settings, the network, and that the server runs.",
        ) from None
    if status in (401, 403):
        raise refused(access, status)
    if status >= 500 or status == 429:
        raise EndpointLostError(
            f"it answers with status {status}", where=where, remedy="Try again later."
        )
    try:
        return [_offer(one) for one in json.loads(text)["supported_models"] if one["model_name"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise EndpointError(
            f"what answers at {access.endpoint.base_url} is no training service of this kind "
            f"(status {status})",
            where=where,
            remedy="Give the address up to, and without, /api/v1.",
        ) from None


def _get(access: Access, timeout_s: float) -> tuple[int, bytes]:
    """Return status and text, both of which have to be here in time."""
    headers = {"X-API-Key": access.key} if access.key else {}
    url, text, late_at = access.endpoint.base_url + PATH, b"", time.monotonic() + timeout_s
    with httpx2.stream("GET", url, headers=headers, timeout=timeout_s) as reply:
        for part in reply.iter_bytes():
            text += part
            if time.monotonic() > late_at or len(text) > LARGEST_BYTES:
                raise httpx2.ReadTimeout("its answer is too slow or too long")
        return reply.status_code, text


def refused(access: Access, status: int) -> EndpointError:
    """Return the error that says that the key is wrong or missing."""
    variable = access.endpoint.key_variable
    hint = f"Put the right one into {variable}" if variable else "Name its variable under Settings"
    what = "its key is refused" if access.key else "it wants a key"
    return EndpointError(
        f"{what} (status {status})",
        where=access.endpoint.name,
        remedy=f"{hint}, or type it when you start or resume the run.",
    )


def choose(offers: list[Offer], settings: Settings, base_model: str, where: str) -> Offer:
    """Return the offer that is a run's base model, by its name, hub id or folder.

    Raises:
        EndpointError: if there is none; what there is is named.
    """
    model = find_model(settings, base_model)
    wanted = {name.casefold() for name in (model.name, model.hub_id, base_model) if name}
    for offer in offers:
        if offer.name.casefold() in wanted:
            return offer
    known = ", ".join(shortened(offer.name) for offer in offers[:20]) or "none"
    raise EndpointError(
        f"it does not train {model.hub_id or model.name}",
        where=where,
        remedy=f"Choose one of its base models: {known}.",
    )


def require_length(offer: Offer, tokens: int, where: str) -> None:
    """Refuse settings that let turns through which the model cannot see.

    Raises:
        EndpointError: if turns may have more tokens than the endpoint allows.
    """
    if offer.context_tokens is not None and tokens > offer.context_tokens:
        raise EndpointError(
            f"turns may have {tokens} tokens, and {offer.name} sees {offer.context_tokens} there",
            where=where,
            remedy="Lower 'Context limit' (max_context_tokens) to leave such turns out.",
        )


def _offer(one: dict[str, Any]) -> Offer:
    length = one.get("max_context_length")
    is_told = isinstance(length, int) and not isinstance(length, bool) and length > 0
    return Offer(name=str(one["model_name"]), context_tokens=length if is_told else None)
