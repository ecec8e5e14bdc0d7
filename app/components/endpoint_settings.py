"""The endpoints that runs can be sent to: named, changed and forgotten by admins."""

import streamlit as st

from app import data, state
from app.components.errors import guarded
from app.components.format import plain
from db import commands
from db.records import Endpoint
from trainer.remote.access import has_key

_KEY = "settings.endpoint."


def render_endpoints() -> None:
    """Show the endpoints, and the form that adds or changes one."""
    st.caption(
        "A run can be computed by another machine that speaks the Tinker API: MinT, Tinker, or a "
        "SkyRL server of your own. Conversations that are trained on are sent there as tokens."
    )
    endpoints = data.endpoints()
    if not endpoints:
        st.info("There are none yet: every run is computed on this machine.", icon=":material/dns:")
    for endpoint in endpoints:
        _show(endpoint)
    st.subheader("Add or change one", anchor=False)
    with st.form("settings.endpoint", border=False, clear_on_submit=True):
        st.text_input(
            "Name",
            key=f"{_KEY}name",
            max_chars=40,
            placeholder="cluster",
            help="What Launch calls it. The name of one that is there changes that one.",
        )
        st.text_input(
            "Address",
            key=f"{_KEY}url",
            placeholder="https://cluster.example.com:8000",
            help="Where it answers, up to and without /api/v1.",
        )
        st.text_input(
            "Variable with its key",
            key=f"{_KEY}variable",
            placeholder="TINKER_API_KEY",
            help="Name of an environment variable of this server; the key itself is never stored. "
            "Empty: it wants none, or it is typed for each start.",
        )
        st.form_submit_button("Save", type="primary", icon=":material/check:", on_click=_save)


def _show(endpoint: Endpoint) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(endpoint.name)}** · {plain(endpoint.base_url)} · {_key(endpoint)}")
        st.button(
            "Forget",
            icon=":material/delete:",
            key=f"{_KEY}forget.{endpoint.name}",
            on_click=_forget,
            args=(endpoint.name,),
            help="Runs that were sent there stay; they cannot be resumed without it.",
        )


def _key(endpoint: Endpoint) -> str:
    if not endpoint.key_variable:
        return "key typed for each start, if it wants one"
    return f"key in {endpoint.key_variable}" + ("" if has_key(endpoint) else " (not set here)")


@guarded
def _save() -> None:
    name = str(state.widget_value(f"{_KEY}name"))
    saved = data.write(
        commands.set_endpoint,
        name,
        base_url=str(state.widget_value(f"{_KEY}url")),
        key_variable=str(state.widget_value(f"{_KEY}variable")),
    )
    state.NOTICE.set(f"Saved: {plain(saved.name)}.")


@guarded
def _forget(name: str) -> None:
    data.write(commands.forget_endpoint, name)
    state.NOTICE.set(f"{plain(name)} is forgotten.")
