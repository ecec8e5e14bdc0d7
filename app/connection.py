"""The database of this process, opened once for all its sessions."""

import streamlit as st

from db.engine import Database, open_database
from db.settings import Settings, read_settings


def settings() -> Settings:
    """Return the folders and the database address this process works with."""
    return read_settings()


def database() -> Database:
    """Return the database, opened once for all sessions of this process."""
    current = settings()
    return _open(str(current.home), current.database_url)


@st.cache_resource(show_spinner=False)
def _open(home: str, database_url: str) -> Database:
    del home, database_url  # they are the cache's key: another address is another database
    return open_database(read_settings())
