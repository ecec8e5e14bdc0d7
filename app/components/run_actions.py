"""What can be done with a run from the list: rename it, and delete it once it has ended."""

import streamlit as st

from app import data, state
from app.components.errors import guarded
from app.components.format import plain
from db import commands
from db.records import Run
from trainer.runs.remove import remove_run

NAME_CHARS = 100
_NAME = "new_run_name"


def run_menu(run: Run) -> None:
    """Show a small menu with the actions that the run's state allows."""
    actions = {"Rename": _ask_name}
    if run.status.has_ended:
        actions["Delete"] = _ask_deletion
    chosen = st.menu_button(
        "Actions",
        list(actions),
        key=f"actions_{run.id}",
        type="tertiary",
        help=None if run.status.has_ended else "A run can be deleted once it has ended.",
    )
    if chosen is not None:
        actions[chosen](run)


@st.dialog("Rename the run")
def _ask_name(run: Run) -> None:
    name = st.text_input("Name", value=run.name, max_chars=NAME_CHARS, key=_NAME) or ""
    if st.button(
        "Rename",
        type="primary",
        disabled=not name.strip(),
        key="rename_run",
        on_click=_rename,
        args=(run.id,),
    ):
        st.rerun()


@st.dialog("Delete this run?", icon=":material/delete:")
def _ask_deletion(run: Run) -> None:
    st.markdown(
        f"**{plain(run.name)}** goes for good: its figures, samples, checkpoints and its adapter. "
        "The conversations and their scores stay."
    )
    with st.container(horizontal=True):
        deleted = st.button(
            "Delete the run", type="primary", key="delete_run", on_click=_delete, args=(run.id,)
        )
        if deleted or st.button("Keep it", key="keep_run"):
            st.rerun()


@guarded
def _rename(run_id: int) -> None:
    data.write(commands.rename_run, run_id, str(state.widget_value(_NAME)).strip())


@guarded
def _delete(run_id: int) -> None:
    data.write(remove_run, run_id)
