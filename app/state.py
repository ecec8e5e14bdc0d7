"""Every key of `st.session_state` that the app sets or reads itself, typed.

Nothing that matters lives here: only what a page needs to remember between two clicks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.draft import Draft
from db.errors import EveryTurnError

if TYPE_CHECKING:
    from app.token_counts import CountJob

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


ARRIVED_AT: Slot[datetime] = Slot("runs.arrived_at", lambda: datetime.now(UTC))
"""Since when this session looks on: runs that end later are news to it."""

SEEN_ENDINGS: Slot[set[tuple[int, int]]] = Slot("runs.seen_endings", set)
"""The ends of runs (run, attempt) that the person has seen or put away."""

TOLD_ENDINGS: Slot[set[tuple[int, int]]] = Slot("runs.told_endings", set)
"""The ends of runs (run, attempt) that a message has popped up for."""

COUNT_JOBS: Slot["dict[str, CountJob]"] = Slot("launch.count_jobs", dict)
"""The launch page's token counts, done or under way, by what they count."""

FAILURE: Slot[EveryTurnError | None] = Slot("failure", lambda: None)
"""What went wrong in a widget's callback, until the page has shown it."""

NOTICE: Slot[str] = Slot("notice", str)
"""What a finished action has to tell (Markdown), until the next page has shown it."""

DRAFT: Slot[Draft | None] = Slot("draft", lambda: None)
"""The conversation in the editor, until it is saved or discarded."""

TABLE_VERSION: Slot[int] = Slot("conversations.version", int)
"""Part of the table's widget key: a new number forgets which rows were chosen."""

EDITED_TURN: Slot[str] = Slot("chat.edited", str)
"""The question of a chat that is being written anew, by its turn's id."""

RECEIVED_FILES: Slot[frozenset[str]] = Slot("import.received", frozenset)
"""Ids of the uploads that an import was made of."""

UPLOAD_VERSION: Slot[int] = Slot("import.version", int)
"""Part of the upload's widget key: a new number empties the upload field."""


def uploads(key: str) -> list[UploadedFile]:
    """Return the files in the upload field with this key."""
    return list(st.session_state.get(key) or ())


def widget_value(key: str) -> object:
    """Return what the widget with this key holds; only valid inside its callback."""
    return st.session_state[key]


def typed(key: str, default: T) -> T:
    """Return what the widget with this key holds, `default` if it is not on the page."""
    return st.session_state.get(key, default)


def widget_texts(key: str) -> tuple[str, ...]:
    """Return the chosen texts of a multiselect; only valid inside its callback."""
    return tuple(st.session_state[key])
