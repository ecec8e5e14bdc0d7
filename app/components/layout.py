"""How wide a page of reading is: text that runs across a whole wide screen is hard to read."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

READING_WIDTH = 1080
"""In pixels; a narrower window simply has less."""


@contextmanager
def reading_page(width: int = READING_WIDTH) -> Iterator[None]:
    """Keep what is drawn inside in one column in the middle of the page."""
    with st.container(horizontal_alignment="center"), st.container(width=width):
        yield
