"""Who is using the app, and what they may do: asked anew on every run of a page and every write."""

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import browsers
from app.connection import database, settings
from app.sign_in_ways import auth_section, binds_to_this_machine, ways
from db import commands, queries
from db.enums import UserRole
from db.errors import EveryTurnError
from db.records import User

CHECKED_S = 2.0
"""For how long a page believes what it knows about a session; writes always ask."""

T = TypeVar("T")

_visitor: ContextVar[tuple[str, str] | None] = ContextVar("visitor", default=None)
"""Token and provider's e-mail address of the page that work done later is for."""


class NotSignedInError(EveryTurnError):
    """Nobody is signed in (any more)."""


class NotAdmittedError(NotSignedInError):
    """A provider says who it is, but nobody has let this person in."""


def current_user() -> User:
    """Return who looks at the page.

    Raises:
        NotSignedInError: if nobody is signed in, or the session has expired.
        NotAdmittedError: if the provider's person may not come in.
        SettingsError: if the password list cannot be read.
    """
    return _user(_recent_lookup)


def acting_user() -> User:
    """Return who is about to change something, by what the database says at this moment.

    Raises:
        NotSignedInError: as `current_user`.
    """
    return _user(_lookup)


def is_admin() -> bool:
    """Return whether the person looking at the page is an admin."""
    return current_user().role is UserRole.ADMIN


def people_sign_in() -> bool:
    """Return whether people sign in here, rather than being the local user."""
    return ways().any


def later(action: Callable[[], T]) -> Callable[[], T]:
    """Return `action` for a time when Streamlit no longer knows whose page it is from.

    It is who looks at the page now, asked again then whether they are still signed in. A download
    that is made at the click needs this.
    """
    visitor = (_token(), _provider_person())

    def as_visitor() -> T:
        before = _visitor.set(visitor)
        try:
            return action()
        finally:
            _visitor.reset(before)

    return as_visitor


def sign_out() -> None:
    """End the session of the person looking at the page."""
    token = _token()
    if token:
        commands.sign_out(database(), token)
    _cached_lookup.clear()
    if _provider_person():
        st.logout()


Lookup = Callable[[str, str, str], User | None]


def _user(lookup: Lookup) -> User:
    here, address = ways(), settings().database_url
    if not here.any:
        if binds_to_this_machine():
            return _found(lookup("local", "", address))
        raise NotSignedInError(
            "this app can be reached from elsewhere, but nobody can sign in yet",
            where="sign-in",
            remedy="On its machine, run: python -m db user add NAME --admin",
        )
    token = _token() if here.password else ""
    user = lookup("token", token, address) if token else None
    if user is None and here.providers:
        person = _provider_person()
        if person:
            user = lookup("name", person, address)
            if user is None:
                raise NotAdmittedError(
                    f"{person} may not come in",
                    where="sign-in",
                    remedy="Ask an admin of this project to let you in.",
                )
    return _found(user)


def _found(user: User | None) -> User:
    context = get_script_run_ctx()
    if context is not None:
        (browsers.forget if user is None else browsers.remember)(context.session_id)
    if user is None:
        raise NotSignedInError(
            "nobody is signed in, or the session has expired",
            where="sign-in",
            remedy="Load the page again and sign in.",
        )
    return user


def _token() -> str:
    visitor = _visitor.get()
    if visitor is not None:
        return visitor[0]
    return st.context.cookies.get(browsers.COOKIE, "")


def _provider_person() -> str:
    """Return the e-mail address that the provider vouches for; "" where nobody is signed in."""
    visitor = _visitor.get()
    if visitor is not None:
        return visitor[1]
    if not ways().providers or not st.user.is_logged_in:
        return ""
    return vouched_email(st.user.to_dict(), auth_section(), _session_length())


def vouched_email(
    claims: Mapping[str, Any],
    section: Mapping[str, Any],
    lasts: timedelta,
    now_s: float | None = None,
) -> str:
    """Return the e-mail address in an identity token, "" if it is too old or not to be relied on.

    An address counts when the provider says that it has checked it. Some providers never say so;
    `accept_unverified_email = true` in the section [auth] relies on them all the same, which is
    safe only where everybody with an account there is one's own.
    """
    issued_s, email = claims.get("iat"), claims.get("email")
    if not isinstance(issued_s, int | float) or not isinstance(email, str):
        return ""
    if (time.time() if now_s is None else now_s) - issued_s > lasts.total_seconds():
        return ""
    verified = claims.get("email_verified")
    relied_on = verified is None and section.get("accept_unverified_email") is True
    return email if verified is True or relied_on else ""


@st.cache_data(ttl=CHECKED_S, show_spinner=False)
def _session_length() -> timedelta:
    return timedelta(hours=queries.project_settings(database()).session_hours)


def _lookup(kind: str, value: str, address: str) -> User | None:
    del address  # part of the cache's key: another database has other people
    match kind:
        case "local":
            return queries.local_user(database())
        case "token":
            return queries.session_user(database(), value)
        case _:
            return queries.admitted_user(database(), value)


_cached_lookup = st.cache_data(ttl=CHECKED_S, max_entries=1000, show_spinner=False)(_lookup)


def _recent_lookup(kind: str, value: str, address: str) -> User | None:
    """Believe for a moment that somebody may be here, but never that they may not."""
    return _cached_lookup(kind, value, address) or _lookup(kind, value, address)
