"""Imports that were made, and taking one back after the question what that takes along."""

import streamlit as st

from app import address, data, state
from app.components.errors import guarded
from app.components.format import ago, counted, plain, shortened
from db import commands
from db.enums import ImportState
from db.records import Import, UndoEffects

_STATES = {
    ImportState.CHECKING: "being checked",
    ImportState.CHECKED: "waits for you",
    ImportState.IMPORTING: "being stored",
    ImportState.DONE: "done",
    ImportState.FAILED: "failed",
    ImportState.CANCELLED: "cancelled",
    ImportState.UNDONE: "undone",
}


def render_imports() -> None:
    """List the latest imports; each opens."""
    jobs = data.imports()
    if not jobs:
        return
    st.subheader("Imports so far", anchor=False)
    for job in jobs:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                plain(shortened(", ".join(file.name for file in job.files), 60)),
                key=f"import.open.{job.id}",
                type="tertiary",
                icon=":material/description:",
                on_click=address.open_import,
                args=(job.id,),
            )
            st.space("stretch")
            st.markdown(f":gray[:small[{_aside(job)}]]", width="content")


def _aside(job: Import) -> str:
    parts = [_STATES[job.state], ago(job.changed_at)]
    if job.report is not None and job.state in (ImportState.DONE, ImportState.CHECKED):
        parts.insert(1, counted(job.report.conversations, "conversation"))
    if job.user:
        parts.append(plain(job.user))
    return " · ".join(parts)


def confirm_undo(import_id: int) -> None:
    """Ask once, with all that goes, above all what people have scored since."""
    _ask(import_id, data.undo_effects(import_id))


@st.dialog("Undo this import?", icon=":material/undo:")
def _ask(import_id: int, effects: UndoEffects) -> None:
    st.write(f"{counted(effects.conversations, 'conversation')} will be gone.")
    if effects.scores_since:
        people = ", ".join(
            f"{counted(count, 'score')} by {plain(name)}" for name, count in effects.scores_since
        )
        st.warning(f"People have scored them since: {people}. These scores go, too.")
    if effects.edited:
        st.warning(f"{counted(effects.edited, 'conversation')} of them were edited since.")
    if effects.merged_scores:
        st.write(
            f"{counted(effects.merged_scores, 'score')} that it added to other conversations "
            "will be taken back."
        )
    if effects.changed_scores:
        st.write(
            f"{counted(effects.changed_scores, 'score')} of that kind stay: their raters have "
            "changed them since."
        )
    st.caption("Finished runs keep their own frozen copy. Names of raters stay.")
    with st.container(horizontal=True):
        undone = st.button("Undo the import", type="primary", on_click=_undo, args=(import_id,))
        kept = st.button("Keep it")
    if undone or kept:
        st.rerun()


@guarded
def _undo(import_id: int) -> None:
    if data.import_(import_id).state is ImportState.DONE:  # a click may arrive twice
        data.write(commands.undo_import, import_id)
    state.NOTICE.set("The import is undone.")
