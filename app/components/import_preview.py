"""One file of an import: how it is read, which can be corrected, and its first conversations."""

from dataclasses import replace

import streamlit as st

from app import data, import_files, import_jobs, state
from app.components.errors import guarded, shown
from app.components.format import counted
from app.components.import_rule import render_rule
from app.components.transcript import render_transcript
from db.formats import AUTO, FORMATS, Detection, ScoreRule
from db.records import Import


def render_file(job: Import, index: int) -> None:
    """Show format, mapping of scores and preview; what is changed is checked again."""
    with shown():
        found = import_files.detection(job, index)
        _format(job, index, found)
        _previews(job, index)
        rule = import_files.rule_of(job, index)
        changed = render_rule(found, rule, key=f"rule.{job.id}.{index}")
        if changed is not None:
            _check_rule(job, index, changed)
            st.rerun()


def _format(job: Import, index: int, found: Detection) -> None:
    key = f"format.{job.id}.{index}"
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    left.selectbox(
        "Format",
        [AUTO, *FORMATS],
        index=[AUTO, *FORMATS].index(job.files[index].format),
        format_func=lambda name: _title(name),
        key=key,
        on_change=_check_format,
        args=(job, index, key),
        help="Recognised from the content; choose another one if it is read wrongly.",
    )
    right.markdown(f":gray[{_sureness(job, index, found)}]")


def _title(name: str) -> str:
    if name == AUTO:
        return "Recognise it"
    return FORMATS[name].title


def _sureness(job: Import, index: int, found: Detection) -> str:
    chosen = job.files[index].format != AUTO
    kind = f"{found.kind}{', gzip' if found.is_gzip else ''}, {found.encoding}"
    fit = f"{found.confidence:.0%} of {counted(found.sampled_rows, 'row')} looked at fit"
    words = f"{'Chosen' if chosen else 'Recognised'}: **{FORMATS[found.format].title}** ({fit})"
    if found.runner_up:
        runner_up = FORMATS[found.runner_up].title
        words += f"; next best: {runner_up} ({found.runner_up_confidence:.0%})"
    return f"{words}. File: {kind}."


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
def _check_format(job: Import, index: int, key: str) -> None:
    chosen = str(state.widget_value(key))
    _check(job, index, format=chosen, rule=None)


@guarded
def _check_rule(job: Import, index: int, rule: ScoreRule) -> None:
    _check(job, index, format=job.files[index].format, rule=rule)


def _check(job: Import, index: int, *, format: str, rule: ScoreRule | None) -> None:
    files = list(job.files)
    json_rule = None if rule is None else rule.to_json()
    files[index] = replace(files[index], format=format, rule=json_rule)
    data.write(import_jobs.check_again, job.id, files)
