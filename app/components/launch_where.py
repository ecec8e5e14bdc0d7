"""Where a run is computed: on this machine, or by an endpoint that is asked what it offers."""

from dataclasses import dataclass, field

import streamlit as st

from app import data
from app.components.errors import show_error
from app.components.format import counted, plain
from db.errors import EveryTurnError
from db.records import Endpoint
from trainer.errors import shortened
from trainer.remote.access import access, has_key, key_of
from trainer.remote.capabilities import ask, choose
from trainer.remote.fitting import SentTokens

HERE = ""
ASK_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Where:
    """Where a run is computed.

    Attributes:
        endpoint: The endpoint's name; empty for this machine.
        key: What was typed for this start.
    """

    endpoint: str = HERE
    key: str = field(default="", repr=False)


def choose_where(base_model: str, preferred: str) -> Where:
    """Ask where the run is computed; without endpoints there is nothing to ask.

    Args:
        base_model: The chosen base model.
        preferred: The endpoint of the run that is asked for again.
    """
    endpoints = {endpoint.name: endpoint for endpoint in data.endpoints()}
    if not endpoints:
        return Where()
    names = [HERE, *endpoints]
    name = st.selectbox(
        "Where",
        names,
        index=names.index(preferred) if preferred in names else 0,
        format_func=lambda name: name or "This machine",
        key="where",
        bind="query-params",
        help="Endpoints are added under Settings.",
    )
    if name == HERE:
        return Where()
    endpoint, key = endpoints[name], ""
    if not has_key(endpoint):
        key = st.text_input(
            "Its key, for this start",
            type="password",
            key="endpoint_key",
            help="Goes into the run's process and is kept nowhere. Empty if it wants none.",
        )
    _show_offer(endpoint, key or "", base_model)
    return Where(name, key or "")


def show_sent(sent: SentTokens) -> None:
    """Say how many tokens a run sends: what it costs."""
    total = sent.training + sent.scoring
    st.markdown(
        f":material/cloud_upload: The run sends **{total:,} tokens**: {sent.training:,} in passes "
        f"that are trained on, {sent.scoring:,} in passes that are only scored. Answers to the "
        f"sample prompts take at most {sent.sampled:,} more.",
        help="Each turn goes with its whole context, in every epoch. What that costs is the "
        "endpoint's price list.",
    )


def _show_offer(endpoint: Endpoint, typed: str, base_model: str) -> None:
    """Say whether the endpoint answers and trains the base model."""
    try:
        asked = access(endpoint, typed or key_of(endpoint))
        offers = ask(asked, timeout_s=ASK_TIMEOUT_S)
        offer = choose(offers, data.settings(), base_model, endpoint.name)
    except EveryTurnError as error:
        show_error(error)
        return
    sees = f", sees {offer.context_tokens:,} tokens" if offer.context_tokens else ""
    st.markdown(
        f":green-badge[:material/check: answers] {plain(shortened(offer.name))}{sees}; "
        f"{counted(len(offers), 'base model')} in all"
    )
