"""Errors as a person can use them: what happened, where, and what to do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

import streamlit as st

from app import state
from app.components.format import plain
from db.errors import EveryTurnError

P = ParamSpec("P")


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


def fragment(
    run_every: float | str | None = None,
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a part of a page that is redrawn by itself; it shows an EveryTurnError in its place.

    Only the page as a whole is drawn within the router's `shown`: a session that has ended, or a
    row that somebody has deleted, would otherwise end a redraw with a traceback.

    Args:
        run_every: Seconds (or "5s") between redraws; None for none but those a widget asks for.
    """

    def made(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            with shown():
                draw(*args, **kwargs)

        return st.fragment(drawn, run_every=run_every)

    return made


def guarded(action: Callable[P, None]) -> Callable[P, None]:
    """Wrap a widget's callback: its EveryTurnError is kept until `show_failure` shows it."""

    @wraps(action)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        state.FAILURE.clear()
        try:
            action(*args, **kwargs)
        except EveryTurnError as error:
            state.FAILURE.set(error)

    return run


def show_failure() -> None:
    """Show what went wrong in the callback before this run of the page, once."""
    failure = state.FAILURE.get()
    if failure is not None:
        show_error(failure)
        state.FAILURE.clear()


def capitalised(text: str) -> str:
    """Return `text` with a capital first letter and the rest unchanged."""
    return text[:1].upper() + text[1:]
