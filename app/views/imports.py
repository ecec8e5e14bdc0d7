"""Import: choose files, see what they hold, correct how they are read, store them, take them back."""

from contextlib import suppress

import streamlit as st

from app import address, auth, data, import_jobs, routes
from app.components.errors import guarded, show_error, show_failure
from app.components.format import ago, counted, plain
from app.components.import_list import confirm_undo, render_imports
from app.components.import_preview import render_files
from app.components.import_progress import render_progress
from app.components.import_report import render_figures, render_issues
from app.components.import_upload import render_upload
from app.components.layout import reading_page
from app.components.notice import show_notice
from db.enums import ImportState
from db.errors import NotFoundError
from db.records import Import


def render() -> None:
    """Draw the import that the address names, or the choice of files."""
    user = auth.current_user()
    show_notice()
    with reading_page():
        job = _job()
        if job is None:
            st.page_link(
                routes.CONVERSATIONS, label="All conversations", icon=":material/arrow_back:"
            )
            st.title("Import conversations", anchor=False)
            show_failure()
            render_upload(user)
            render_imports()
        else:
            st.button(
                "All imports",
                icon=":material/arrow_back:",
                type="tertiary",
                on_click=address.open_import,
                args=(None,),
            )
            _one(job)


def _job() -> Import | None:
    import_id = address.import_id()
    if import_id is None:
        return None
    try:
        return data.import_(import_id)
    except NotFoundError as error:
        show_error(error)
        return None


def _one(job: Import) -> None:
    names = ", ".join(plain(file.name) for file in job.files)
    st.title(
        f"Import {names}" if len(names) < 60 else f"Import {len(job.files)} files", anchor=False
    )
    show_failure()
    match job.state:
        case ImportState.CHECKING | ImportState.IMPORTING:
            render_progress(job)
        case ImportState.CHECKED:
            _checked(job)
        case ImportState.FAILED | ImportState.CANCELLED:
            _stopped(job)
        case ImportState.DONE:
            _done(job)
        case ImportState.UNDONE:
            st.info(
                f"This import was undone {ago(job.changed_at)}: nothing of it is left. To bring "
                "its conversations back, import the files again."
            )


def _checked(job: Import) -> None:
    report = job.report
    assert report is not None  # a check that has ended has one
    render_figures(report)
    with st.container(horizontal=True):
        st.button(
            _offer(report.conversations, report.scores),
            type="primary",
            disabled=report.conversations + report.scores == 0,
            on_click=_begin,
            args=(job.id,),
        )
        st.button("Discard", on_click=_discard, args=(job.id,))
    render_issues(report)
    render_files(job)


def _offer(conversations: int, scores: int) -> str:
    if conversations:
        return f"Import {counted(conversations, 'conversation')}"
    return f"Add {counted(scores, 'score')} to what is here" if scores else "Nothing to import"


def _stopped(job: Import) -> None:
    if job.state is ImportState.FAILED:
        st.error(f"**Nothing was imported.** {plain(job.error_text)}", icon=":material/error:")
    else:
        st.info("This was cancelled. Nothing was imported.")
    with st.container(horizontal=True):
        st.button("Check again", type="primary", on_click=_check, args=(job,), key="again")
        st.button("Discard", on_click=_discard, args=(job.id,))
    render_files(job)


def _done(job: Import) -> None:
    report = job.report
    assert report is not None  # an import that is done has one
    st.success(
        f"Imported {counted(report.conversations, 'conversation')} with "
        f"{counted(report.scores, 'score')}, {ago(job.changed_at)}.",
        icon=":material/check_circle:",
    )
    with st.container(horizontal=True):
        if st.button("See the conversations", type="primary"):
            st.switch_page(routes.CONVERSATIONS)
        if st.button("Undo this import", icon=":material/undo:"):
            confirm_undo(job.id)
    render_figures(report)
    render_issues(report)


@guarded
def _begin(import_id: int) -> None:
    data.write(import_jobs.begin_import, import_id)


@guarded
def _check(job: Import) -> None:
    data.write(import_jobs.check_again, job.id, job.files)


@guarded
def _discard(import_id: int) -> None:
    with suppress(NotFoundError):  # a click may arrive twice
        data.write(import_jobs.discard, import_id)
    address.open_import(None)


if __name__ == "__main__":
    render()
