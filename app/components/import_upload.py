"""Where files come in: dropped in the browser, or a data set of the Hugging Face Hub by name."""

import streamlit as st

from app import address, data, import_jobs, state
from app.components.errors import guarded
from db.formats import FORMATS
from db.records import HubSet, User

_SUFFIXES = ["json", "jsonl", "ndjson", "csv", "tsv", "parquet", "gz", "zip"]


def render_upload(user: User) -> None:
    """Offer both ways; what comes in is checked at once, and nothing is stored yet."""
    key = f"import.files.{state.UPLOAD_VERSION.get()}"
    limit_mb = st.get_option("server.maxUploadSize")
    st.file_uploader(
        "Files with conversations",
        type=_SUFFIXES,
        accept_multiple_files=True,
        key=key,
        on_change=_receive,
        args=(key, user.id),
        help="JSON, JSON Lines, CSV or Parquet, each also packed with gzip, or several of them in a "
        "zip archive. You see what they hold before anything is stored.",
    )
    titles = ", ".join(format.title for format in FORMATS.values())
    st.caption(
        f"Recognised by content: {titles}. A file may have {limit_mb:,} MB here; import larger "
        "ones on the server: `python -m db import FILE`. Importing a file twice adds nothing."
    )
    with st.expander("A data set of the Hugging Face Hub", icon=":material/cloud_download:"):
        _hub(user)


def _hub(user: User) -> None:
    with st.form("import.hub", border=False):
        name = st.text_input(
            "Name",
            placeholder="HuggingFaceH4/ultrafeedback_binarized",
            help="Owner and name, as in the data set's address. No code of the data set is run.",
        )
        left, middle, right = st.columns(3)
        split = left.text_input("Split", "train", help="Which part of it")
        config = middle.text_input(
            "Configuration", help="Only where the data set has several; else leave it empty"
        )
        limit = right.number_input(
            "Rows", min_value=1, value=1000, step=1000, help="How many rows at most, from the first"
        )
        if st.form_submit_button("Fetch and check"):
            _fetch(name.strip(), split.strip(), config.strip(), int(limit), user.id)
            st.rerun()


@guarded
def _receive(key: str, user_id: int) -> None:
    uploads = state.uploads(key)
    ids = {upload.file_id for upload in uploads}
    if ids - state.RECEIVED_FILES.get():  # the browser's message may come twice
        state.RECEIVED_FILES.set(state.RECEIVED_FILES.get() | ids)
        import_id = data.write(import_jobs.receive, uploads, user_id=user_id)
        state.UPLOAD_VERSION.set(state.UPLOAD_VERSION.get() + 1)
        address.open_import(import_id)


@guarded
def _fetch(name: str, split: str, config: str, limit: int, user_id: int) -> None:
    wanted = HubSet(name=name, split=split or "train", config=config or None, limit=limit)
    address.open_import(data.write(import_jobs.fetch, wanted, user_id=user_id))
