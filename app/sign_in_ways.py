"""How people sign in here, and whether a connection comes from this machine.

Nobody signs in, and everybody is the local user, only while all of this holds: no password and no
provider is set up, the server was told a loopback address to bind to, and a connection came over
the loopback interface, for a loopback name, and through no proxy. Otherwise people sign in; where
they cannot, nothing is served.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from app.connection import settings
from db import passwords

_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


@dataclass(frozen=True, slots=True)
class Ways:
    """How people sign in.

    Attributes:
        password: Whether anybody is on the password list.
        providers: The names for `st.login`; "default" is the provider of the section [auth].
    """

    password: bool
    providers: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether people sign in at all."""
        return self.password or bool(self.providers)


def ways() -> Ways:
    """Return how people sign in.

    Raises:
        SettingsError: if the password list cannot be read.
    """
    return Ways(password=passwords.is_listed(settings()), providers=_providers(auth_section()))


def auth_section() -> Mapping[str, Any]:
    """Return the section [auth] of `.streamlit/secrets.toml`, empty where there is none."""
    if not st.secrets.load_if_toml_exists() or "auth" not in st.secrets:
        return {}
    return st.secrets["auth"]


def binds_to_this_machine() -> bool:
    """Return whether the server was told to listen on a loopback address only."""
    address = st.get_option("server.address")
    return isinstance(address, str) and _is_loopback(address)


def is_local(
    client: str | None, server: str | None, headers: Mapping[str, str], *, host: str | None
) -> bool:
    """Return whether a connection comes from this machine, through nobody else.

    Args:
        client: Address of the other end; None where it has none.
        server: Our own address on this connection.
        headers: The request's headers, by lower-case names.
        host: What the browser believes to talk to. A page elsewhere whose name was made to point
            at this machine sends its own name.
    """
    return (
        binds_to_this_machine()
        and all(end is not None and _is_loopback(end) for end in (client, server))
        and _is_loopback(_host_name(host))
        and not any(name in headers for name in _PROXY_HEADERS)
    )


def _providers(section: Mapping[str, Any]) -> tuple[str, ...]:
    named = [
        name
        for name, value in section.items()
        if isinstance(value, Mapping) and "client_id" in value
    ]
    return (*(["default"] if "client_id" in section else []), *named)


def _host_name(host: str | None) -> str:
    try:
        return urlsplit(f"//{host or ''}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(address: str) -> bool:
    if address.lower() == "localhost":
        return True
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if found.version == 6 else None
    return (mapped or found).is_loopback
