"""Rows of the database for the pages, cached for a moment."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from app import auth
from app.connection import database, settings
from db.engine import Database

P = ParamSpec("P")
T = TypeVar("T")

ROWS_TTL_S = 2.0
"""How long another process's writes may stay unseen; our own are seen at once (`write`)."""


def read(query: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a query says, as it was at most `ROWS_TTL_S` ago.

    Raises:
        NotSignedInError: if nobody is signed in.
    """
    auth.current_user()  # a page that stays open shows nothing more once its person has left
    return _cached(query, query.__name__, settings().database_url, args, kwargs)


def refresh() -> None:
    """Forget what was read, so that the next read sees the database as it is now."""
    _cached.clear()


@st.cache_data(ttl=ROWS_TTL_S, max_entries=2000, show_spinner=False)
def _cached(
    _query: Callable[..., Any],
    name: str,
    address: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    return _query(database(), *args, **kwargs)
