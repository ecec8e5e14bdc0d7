"""What can be done with a run: rename, run again, compare, move or cancel while it waits, delete."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app import auth, data, launch_again, routes, state
from app.components.errors import guarded
from app.components.format import counted, plain
from app.components.queue_order import earlier_position, later_position
from db import commands
from db.enums import RunStatus, UserRole
from db.records import Run
from db.text import MAX_NAME_CHARS
from trainer.runs.launch import request_stop, resume_run
from trainer.runs.remove import remove_run

_NAME = "new_run_name"


def may_act() -> bool:
    """Return whether the person may start, stop, rename and delete runs."""
    return auth.current_user().role is UserRole.ADMIN


def run_menu(run: Run) -> None:
    """Show a small menu with the actions that the run's state allows."""
    actions: dict[str, Callable[[Run], None]] = {}
    if may_act():
        actions["Run again with changes"] = run_again
    actions["Compare"] = compare
    if may_act():
        actions["Rename"] = _ask_name
    if may_act() and run.status.has_ended:
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


def run_again(run: Run, changes: Mapping[str, Any] | None = None) -> None:
    """Open the launch page filled with this run's settings, some of them changed."""
    st.switch_page(routes.LAUNCH, query_params=launch_again.params(run.id, changes))


def compare(run: Run) -> None:
    """Open the comparison with this run in it."""
    st.switch_page(routes.COMPARE, query_params={routes.COMPARED_PARAM: str(run.id)})


def waiting_actions(run: Run) -> None:
    """Show what can be done with a run that waits: sooner, later, not at all."""
    if not may_act():
        return
    waiting = data.runs_with_status(RunStatus.QUEUED)
    moves = (
        ("Sooner", ":material/arrow_upward:", earlier_position(waiting, run.id)),
        ("Later", ":material/arrow_downward:", later_position(waiting, run.id)),
    )
    with st.container(horizontal=True):
        for name, icon, position in moves:
            st.button(
                name,
                icon=icon,
                key=f"{name.lower()}_{run.id}",
                disabled=position is None,
                on_click=_move,
                args=(run.id, position),
            )
        st.button(
            "Cancel",
            icon=":material/close:",
            key=f"cancel_{run.id}",
            on_click=stop,
            args=(run.id,),
            help="Takes the run out of the queue. It can be put back from its page.",
        )


@guarded
def stop(run_id: int) -> None:
    """Ask a run to stop; a waiting one leaves the queue at once."""
    data.write(request_stop, run_id)


@guarded
def resume(run_id: int, attempt: int) -> None:
    """Let a run go on from its last checkpoint; of two clicks one counts."""
    data.write(resume_run, run_id, attempt=attempt)


@guarded
def _move(run_id: int, position: int) -> None:
    data.write(commands.move_waiting_run, run_id, position=position)


@st.dialog("Rename the run")
def _ask_name(run: Run) -> None:
    name = st.text_input("Name", value=run.name, max_chars=MAX_NAME_CHARS, key=_NAME) or ""
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
        f"**{plain(run.name)}** goes for good: {counted(run.metric_rows, 'row')} of figures, its "
        "samples, checkpoints, log and adapter. The conversations and their scores stay."
    )
    with st.container(horizontal=True):
        deleted = st.button(
            "Delete the run", type="primary", key="delete_run", on_click=_delete, args=(run.id,)
        )
        kept = st.button("Keep it", key="keep_run")
    if deleted:
        st.switch_page(routes.RUNS)
    if kept:
        st.rerun()


@guarded
def _rename(run_id: int) -> None:
    data.write(commands.rename_run, run_id, str(state.widget_value(_NAME)).strip())


@guarded
def _delete(run_id: int) -> None:
    data.write(remove_run, run_id)
