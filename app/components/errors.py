"""Errors as a person can use them: what happened, where, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.components.format import plain
from db.errors import EveryTurnError


def show_error(error: EveryTurnError) -> None:
    """Show an error's sentence, its place and its remedy; never a traceback."""
    sentence = f"**{plain(capitalised(error.what.rstrip('.')))}.**"
    parts = [sentence, plain(error.remedy), plain(error.where) and f"Where: {plain(error.where)}"]
    st.error("  \n".join(part for part in parts if part), icon=":material/error:")


@contextmanager
def shown() -> Iterator[None]:
    """Run a block; an EveryTurnError in it is shown where it happened instead of raised."""
    try:
        yield
    except EveryTurnError as error:
        show_error(error)


def capitalised(text: str) -> str:
    """Return `text` with a capital first letter and the rest unchanged."""
    return text[:1].upper() + text[1:]
