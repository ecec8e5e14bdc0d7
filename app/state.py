"""Every key of `st.session_state` that the app sets or reads itself, typed.

Nothing that matters lives here: only what a page needs to remember between two clicks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import uuid4

import streamlit as st

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slot(Generic[T]):
    """One typed place in the session's state."""

    key: str
    default: Callable[[], T]

    def get(self) -> T:
        """Return the value, which is set to the default on first use."""
        if self.key not in st.session_state:
            st.session_state[self.key] = self.default()
        return st.session_state[self.key]

    def set(self, value: T) -> None:
        """Keep `value` until the session ends."""
        st.session_state[self.key] = value

    def clear(self) -> None:
        """Go back to the default."""
        st.session_state.pop(self.key, None)


LAUNCH_TOKEN: Slot[str] = Slot("launch.token", lambda: uuid4().hex)
"""Names one intention to start a run, so that two clicks make one run."""


def widget_value(key: str) -> object:
    """Return what the widget with this key holds; only valid inside its callback."""
    return st.session_state[key]
