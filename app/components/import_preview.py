"""The files of an import: how each is read, which can be corrected, and its first conversations."""

from dataclasses import replace

import streamlit as st

from app import address, data, import_files, import_jobs, state
from app.components.errors import guarded, shown
from app.components.format import counted
from app.components.import_rule import render_rule
from app.components.transcript import render_transcript
from db.formats import (
    AUTO,
    ENCODINGS,
    FORMATS,
    Detection,
    FileKind,
    ScoreRule,
    encoding_title,
)
from db.records import Import, ImportFile


def render_files(job: Import) -> None:
    """Show the file that the address names; where there are several, another can be chosen."""
    count = len(job.files)
    index = min(address.file(), count - 1)
    if count > 1:
        key = f"file.{job.id}"
        index = st.selectbox(
            f"File ({count})",
            range(count),
            index=index,
            format_func=lambda number: job.files[number].name,
            key=key,
            on_change=_open_file,
            args=(key,),
            help="Format, encoding and scales are each file's own.",
        )
    _file(job, index)


def _open_file(key: str) -> None:
    address.open_file(int(str(state.widget_value(key))))


def _file(job: Import, index: int) -> None:
    """Show format, encoding, mapping of scores and preview; what is changed is checked again."""
    _choices(job, index)
    with shown():
        found = import_files.detection(job, index)
        st.markdown(f":gray[{_sureness(job, index, found)}]")
        _previews(job, index)
        rule = import_files.rule_of(job, index)
        changed = render_rule(found, rule, key=f"rule.{job.id}.{index}")
        if changed is not None:
            _check_rule(job, index, changed)
            st.rerun()


def _choices(job: Import, index: int) -> None:
    """Let format and encoding be chosen, also where the file cannot be read as it was recognised."""
    file = job.files[index]
    left, right = st.columns(2)
    for column, label, chosen, titles, about in (
        (
            left,
            "Format",
            file.format,
            {name: format.title for name, format in FORMATS.items()},
            "Recognised from the content; choose another one if it is read wrongly.",
        ),
        (
            right,
            "Encoding",
            file.encoding,
            ENCODINGS,
            "Recognised from the content; choose another one if letters come out wrong. "
            "Parquet files need none.",
        ),
    ):
        key = f"{label.lower()}.{job.id}.{index}"
        names = [AUTO, *titles]
        column.selectbox(
            label,
            names,
            index=names.index(chosen),
            format_func={AUTO: "Recognise it", **titles}.__getitem__,
            key=key,
            on_change=_check_choice,
            args=(job, index, label.lower(), key),
            help=about,
        )


def _sureness(job: Import, index: int, found: Detection) -> str:
    chosen = job.files[index].format != AUTO
    fit = f"{found.confidence:.0%} of {counted(found.sampled_rows, 'row')} looked at fit"
    words = f"{'Chosen' if chosen else 'Recognised'}: **{FORMATS[found.format].title}** ({fit})"
    if found.runner_up:
        runner_up = FORMATS[found.runner_up].title
        words += f"; next best: {runner_up} ({found.runner_up_confidence:.0%})"
    return f"{words}. File: {_kind(job, index, found)}."


def _kind(job: Import, index: int, found: Detection) -> str:
    """Say what kind of file it is, and in which encoding."""
    parts = [found.kind.value]
    if found.is_gzip:
        parts.append("gzip")
    if found.kind is not FileKind.PARQUET:
        encoding = found.facts.encoding
        chosen = job.files[index].encoding != AUTO
        words = f"{'chosen' if chosen else 'recognised'}: **{encoding_title(encoding.name)}**"
        words += f" (fits {encoding.confidence:.0%}"
        if encoding.runner_up:
            words += f"; next best: {encoding_title(encoding.runner_up)}"
        parts.append(f"{words})")
    return ", ".join(parts)


def _previews(job: Import, index: int) -> None:
    previews = import_files.previews(job, index)
    if not previews:
        st.caption("No conversation can be read from the first rows.")
        return
    st.markdown("**How the first conversations come out**")
    number = 1
    if len(previews) > 1:
        number = st.pagination(len(previews), key=f"preview.{job.id}.{index}")
    preview = previews[number - 1]
    left, right = st.columns(2)
    with left.container(border=True, height=400):
        render_transcript(preview.conversation, key=f"preview.{job.id}.{index}.{number}")
    with right.container(border=True, height=400):
        st.caption(f"Row {preview.row} of the file")
        st.code(preview.raw + ("\n…" if preview.is_cut else ""), language="json", wrap_lines=True)


@guarded
def _check_choice(job: Import, index: int, field: str, key: str) -> None:
    chosen = str(state.widget_value(key))
    file = job.files[index]
    if field == "format":
        _check(job, index, replace(file, format=chosen, rule=None))
    else:
        _check(job, index, replace(file, encoding=chosen))


@guarded
def _check_rule(job: Import, index: int, rule: ScoreRule) -> None:
    _check(job, index, replace(job.files[index], rule=rule.to_json()))


def _check(job: Import, index: int, changed: ImportFile) -> None:
    files = list(job.files)
    files[index] = changed
    data.write(import_jobs.check_again, job.id, files)
