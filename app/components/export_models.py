"""The run page's exports: each form made in the background, checked, then offered with commands."""

import streamlit as st

from app import data, state
from app.components.errors import fragment, guarded
from app.components.format import plain
from app.components.run_status import REFRESH_S
from app.downloads import for_admins
from db.engine import Database
from db.records import Run
from trainer.catalog import find_model
from trainer.errors import ModelError
from trainer.export.jobs import (
    Export,
    Job,
    JobState,
    cancel_export,
    export_job,
    remove_export,
    start_export,
    start_upload,
    upload_job,
)
from trainer.export.usage import Form, GgufType, ways
from trainer.runs.download import zip_folder
from trainer.runs.folder import RunFolder, size_of

FORMS = {
    Form.ADAPTER: ("Adapter", "LoRA adapter for peft and vLLM; needs the base model beside it."),
    Form.MERGED: ("Merged model", "The whole model with the adapter in it, as safetensors."),
    Form.GGUF: ("Merged, as GGUF", "The whole model for llama.cpp, and Ollama with its Modelfile."),
    Form.GGUF_ADAPTER: ("Adapter, as GGUF", "The adapter alone for llama.cpp and Ollama."),
}

MOST_BYTES = 400_000_000
"""A larger export is not sent through the web server, which would hold all of it in memory."""


def render_exports(run: Run) -> None:
    """Let an admin choose a form, make it, and take it away."""
    form = st.radio(
        "Form",
        list(FORMS),
        horizontal=True,
        format_func=lambda form: FORMS[form][0],
        key="export_form",
    )
    gguf_type = GgufType.F16
    if form in (Form.GGUF, Form.GGUF_ADAPTER):
        gguf_type = st.selectbox(
            "Numbers as",
            list(GgufType),
            width=240,
            index=list(GgufType).index(GgufType.F16),
            key="export_type",
            help="f32: exact. f16: half the size. q8_0: a quarter, for a little accuracy.",
        )
    st.caption(FORMS[form][1])
    wanted = Export(RunFolder(data.settings().run_dir(run.id)), form, gguf_type)
    job = export_job(wanted)
    if job.state is JobState.UNDER_WAY:
        fragment(REFRESH_S)(_follow_export)(wanted)
        st.button("Cancel", key="cancel_export", on_click=_cancel, args=(wanted,))
        return
    if job.state is JobState.DONE:
        _offer(run, wanted, job)
        return
    if job.state is JobState.FAILED:
        st.error(f"**It was not made.** {plain(job.message)}", icon=":material/error:")
    st.button(
        "Make it" if job.state is JobState.NONE else "Try again",
        type="primary",
        icon=":material/package_2:",
        key="make_export",
        on_click=_start,
        args=(wanted,),
        help="It is written in the background, loaded again, and offered only if it says what the "
        "trained model says. You can leave this page.",
    )


def _follow_export(wanted: Export) -> None:
    job = export_job(wanted)
    if job.state is not JobState.UNDER_WAY:
        st.rerun()
    st.info(plain(job.message) or "Starting…", icon=":material/hourglass_top:")


def _offer(run: Run, wanted: Export, job: Job) -> None:
    st.success(plain(job.message) or "Made and checked.", icon=":material/verified:")
    size = size_of(wanted.folder)
    with st.container(horizontal=True, vertical_alignment="center"):
        if size <= MOST_BYTES:
            st.download_button(
                f"Download ({size / 1e6:,.0f} MB)",
                for_admins("model", lambda: zip_folder(wanted.folder)),
                f"everyturn-run-{run.id}-{wanted.name}.zip",
                "application/zip",
                icon=":material/download:",
                type="primary",
                on_click="ignore",
                key="download_export",
            )
        else:
            st.caption(f"{size / 1e9:.1f} GB: take it from its folder on the server.")
        st.button("Delete it", key="delete_export", on_click=_remove, args=(wanted,))
    st.code(str(wanted.folder), language=None)
    for way in ways(
        wanted.form, folder=str(wanted.folder), base=_base_name(run), name=f"everyturn-{run.id}"
    ):
        st.markdown(f"**{way.title}**")
        st.code(way.text, language=way.language, wrap_lines=True)
    with st.expander("Push to the Hugging Face Hub", icon=":material/cloud_upload:"):
        _push(wanted)


def _base_name(run: Run) -> str:
    try:
        base = find_model(data.settings(), run.base_model)
    except ModelError:
        return run.base_model
    return base.hub_id or base.name


def _push(wanted: Export) -> None:
    job = upload_job(wanted)
    if job.state is JobState.UNDER_WAY:
        fragment(REFRESH_S)(_follow_upload)(wanted)
        return
    if job.state is JobState.DONE:
        st.success(plain(job.message), icon=":material/cloud_done:")
    if job.state is JobState.FAILED:
        st.error(f"**Not uploaded.** {plain(job.message)}", icon=":material/cloud_off:")
    with st.form("push", border=False, clear_on_submit=True):
        st.text_input("Repository", placeholder="owner/name", key="push_to", max_chars=96)
        st.text_input(
            "Token", type="password", key="push_token", max_chars=200,
            help="A token with the right to write, from your settings on the hub. It is used for "
            "this upload and kept nowhere.",
        )  # fmt: skip
        st.checkbox("Everybody may see it", key="push_public")
        st.form_submit_button("Upload", on_click=_upload, args=(wanted,))


def _follow_upload(wanted: Export) -> None:
    if upload_job(wanted).state is not JobState.UNDER_WAY:
        st.rerun()
    st.info("Uploading…", icon=":material/cloud_upload:")


@guarded
def _start(wanted: Export) -> None:
    data.write(begin_export, wanted)


@guarded
def _cancel(wanted: Export) -> None:
    data.write(end_export, wanted)


@guarded
def _remove(wanted: Export) -> None:
    data.write(delete_export, wanted)


@guarded
def _upload(wanted: Export) -> None:
    repository = str(state.widget_value("push_to")).strip()
    token = str(state.widget_value("push_token"))
    data.write(upload_export, wanted, repository, token, bool(state.widget_value("push_public")))


def begin_export(db: Database, wanted: Export) -> None:
    """Make an export; for admins, as every command that is not named in `app.permissions`."""
    start_export(db.settings, wanted)


def end_export(_db: Database, wanted: Export) -> None:
    """End an export that is under way."""
    cancel_export(wanted)


def delete_export(_db: Database, wanted: Export) -> None:
    """Delete an export."""
    remove_export(wanted)


def upload_export(db: Database, wanted: Export, repository: str, token: str, public: bool) -> None:
    """Upload an export to the hub."""
    start_upload(db.settings, wanted, repository, token, public=public)
