"""A check or an import while it goes on, and the way to end it."""

import streamlit as st

from app import data, import_jobs
from app.components.errors import fragment, guarded
from app.components.format import plain
from db.enums import ImportState
from db.records import Import

EVERY_S = 0.5


def render_progress(job: Import) -> None:
    """Show how far it is until it has ended; then the whole page is drawn anew."""
    if job.state is ImportState.CHECKING:
        st.write("The files are being read and compared with what is here. Nothing is stored yet.")
    else:
        st.write("All of it is stored in one step, or, if that is cancelled, nothing.")
    _follow(job.id, job.state)
    st.button("Cancel", on_click=_cancel, args=(job.id,))


@fragment(EVERY_S)
def _follow(import_id: int, state: ImportState) -> None:
    job = data.import_(import_id)
    if job.state is not state:
        st.rerun()
    st.progress(job.progress, text=plain(job.message) or "Starting")


@guarded
def _cancel(import_id: int) -> None:
    data.write(import_jobs.cancel, import_id)
