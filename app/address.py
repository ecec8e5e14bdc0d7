"""What the address bar says: the numbers after `?`, read and written in one place."""

import re
from collections.abc import Sequence
from uuid import uuid4

import streamlit as st

from app.routes import (
    CHAT_PARAM,
    COLLECTION_PARAM,
    COMPARED_PARAM,
    CONVERSATION_PARAM,
    FROM_RUN_PARAM,
    IMPORT_PARAM,
    RUN_PARAM,
)

_TURN_PARAM = "turn"
_START_PARAM = "start"
_FILE_PARAM = "file"
MODE_PARAM = "mode"

_NUMBER = re.compile(r"[0-9]{1,18}")
"""What every column for ids can hold; anything else names nothing."""


def conversation_id() -> int | None:
    """Return the conversation that the address names, if any."""
    return _number(CONVERSATION_PARAM)


def run_id() -> int | None:
    """Return the run that the address names, if any."""
    return _number(RUN_PARAM)


def import_id() -> int | None:
    """Return the import that the address names, if any."""
    return _number(IMPORT_PARAM)


def open_import(import_id: int | None) -> None:
    """Point the address at an import of this page, or back at the choice of files."""
    _put(IMPORT_PARAM, import_id)
    _put(_FILE_PARAM, None)


def file() -> int:
    """Return which file of an import the address names, counted from 0; the first if none."""
    return max((_number(_FILE_PARAM) or 1) - 1, 0)


def open_file(index: int) -> None:
    """Point the address at a file of the import, counted from 0."""
    _put(_FILE_PARAM, index + 1 if index else None)


def collection_id() -> int | None:
    """Return the collection that the address names, if any."""
    return _number(COLLECTION_PARAM)


def open_collection(collection_id: int | None) -> None:
    """Point the address at a collection, or back at the form."""
    _put(COLLECTION_PARAM, collection_id)


def chat_id() -> str:
    """Return the chat that the address names, empty if it names none."""
    return st.query_params.get(CHAT_PARAM, "")


def open_chat(chat_id: str | None) -> None:
    """Point the address at a chat, or at one that nobody has begun yet."""
    for name in (RUN_PARAM, CONVERSATION_PARAM):
        _put(name, None)
    _put(CHAT_PARAM, chat_id)


def from_run_id() -> int | None:
    """Return the run that the launch page is to begin from, if any."""
    return _number(FROM_RUN_PARAM)


def start_token() -> str:
    """Return what names this intention to start a run; the address gets it where it has none.

    So a reload, a copied tab and a press on Back mean the same start as before.
    """
    if _START_PARAM not in st.query_params:
        renew_start_token()
    return st.query_params[_START_PARAM]


def renew_start_token() -> None:
    """Let the next start be another one."""
    _put(_START_PARAM, uuid4().hex)


def compared_ids() -> list[int]:
    """Return the runs that the address lays side by side, in its order."""
    return [int(text) for text in _NUMBER.findall(st.query_params.get(COMPARED_PARAM, ""))]


def open_compared(run_ids: Sequence[int]) -> None:
    """Point the address at a comparison of these runs."""
    _put(COMPARED_PARAM, ",".join(str(id) for id in run_ids) or None)


def turn() -> int | None:
    """Return the assistant turn that the address names, counted from 0."""
    number = _number(_TURN_PARAM)
    return None if number is None else number - 1


def mode() -> str:
    """Return what is being done on the page ("new", "edit", or nothing)."""
    return st.query_params.get(MODE_PARAM, "")


def open_conversation(conversation_id: int | None, *, mode: str = "") -> None:
    """Point the address at a conversation of this page, or back at the list."""
    _put(CONVERSATION_PARAM, conversation_id)
    _put(_TURN_PARAM, None)
    _put(MODE_PARAM, mode or None)


def open_turn(turn: int | None) -> None:
    """Point the address at an assistant turn, counted from 0."""
    _put(_TURN_PARAM, None if turn is None else turn + 1)


def _number(name: str) -> int | None:
    text = st.query_params.get(name, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _put(name: str, value: int | str | None) -> None:
    if value is None:
        if name in st.query_params:
            del st.query_params[name]
    else:
        st.query_params[name] = str(value)
