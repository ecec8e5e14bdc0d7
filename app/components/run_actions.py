"""What can be done with a run from the list: rename it, and delete it once it has ended."""

from collections.abc import Callable

import streamlit as st

from app import data
from app.components.errors import show_error
from app.components.format import plain
from db import commands
from db.errors import EveryTurnError
from db.records import Run
from trainer.runs.remove import remove_run


def run_menu(run: Run) -> None:
    """Show a small menu with the actions that the run's state allows."""
    with st.popover("", icon=":material/more_vert:", type="tertiary", help="Rename or delete"):
        if st.button("Rename", icon=":material/edit:", type="tertiary", key=f"rename_{run.id}"):
            _rename(run)
        if st.button(
            "Delete",
            icon=":material/delete:",
            type="tertiary",
            key=f"delete_{run.id}",
            disabled=not run.status.has_ended,
            help=None if run.status.has_ended else "Stop the run first.",
        ):
            _delete(run)


@st.dialog("Rename the run")
def _rename(run: Run) -> None:
    name = st.text_input("Name", value=run.name, max_chars=100)
    if st.button("Rename", type="primary", disabled=not (name or "").strip(), key="rename_run"):
        _do(commands.rename_run, run.id, (name or "").strip())


@st.dialog("Delete this run?")
def _delete(run: Run) -> None:
    st.markdown(
        f"**{plain(run.name)}** goes for good: its figures, samples, checkpoints and its adapter. "
        "The conversations and their scores stay."
    )
    if st.button("Delete the run", type="primary", icon=":material/delete:", key="delete_run"):
        _do(remove_run, run.id)


def _do(command: Callable[..., None], *args: object) -> None:
    try:
        data.write(command, *args)
    except EveryTurnError as error:
        show_error(error)
    else:
        st.rerun()
