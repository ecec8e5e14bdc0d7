"""What an endpoint offers, asked over plain HTTP before anything is sent. No torch, no SDK."""

from dataclasses import dataclass
from typing import Any

import httpx2

from db.settings import Settings
from trainer.catalog import find_model
from trainer.errors import EndpointError, EndpointLostError, shortened
from trainer.remote.access import Access

PATH = "/api/v1/get_server_capabilities"


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
    headers = {"X-API-Key": access.key} if access.key else {}
    where = access.endpoint.name
    try:
        reply = httpx2.get(access.endpoint.base_url + PATH, headers=headers, timeout=timeout_s)
    except httpx2.HTTPError as error:
        raise EndpointLostError(
            f"it does not answer at {access.endpoint.base_url} "
            f"({access.redact(shortened(str(error) or type(error).__name__))})",
            where=where,
            remedy="Check the address under Settings, the network, and that the server runs.",
        ) from None
    if reply.status_code in (401, 403):
        raise refused(access, reply.status_code)
    if reply.status_code >= 500 or reply.status_code == 429:
        raise EndpointLostError(
            f"it answers with status {reply.status_code}", where=where, remedy="Try again later."
        )
    try:
        return [_offer(one) for one in reply.json()["supported_models"] if one.get("model_name")]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EndpointError(
            f"what answers at {access.endpoint.base_url} is no training service of this kind "
            f"(status {reply.status_code})",
            where=where,
            remedy="Give the address up to, and without, /api/v1.",
        ) from None


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
    known = ", ".join(offer.name for offer in offers[:20]) or "none"
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
    return Offer(
        name=str(one["model_name"]), context_tokens=length if isinstance(length, int) else None
    )
