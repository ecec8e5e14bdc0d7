"""Below the charts: samples before and after, configuration, data, log, and what to take away."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app import auth, data, run_files
from app.components.charts_data import data_chart
from app.components.config_form import labelled
from app.components.errors import fragment
from app.components.evaluate_changes import render_changes
from app.components.evaluate_samples import render_samples
from app.components.export_models import render_exports
from app.components.format import plain
from app.components.label_blind import hides_from
from app.components.run_charts import show_chart
from app.components.turn_table import turn_table
from app.downloads import for_admins
from app.metrics import run_metrics
from db.records import Run
from trainer.config import TrainConfig
from trainer.preview import preview
from trainer.runs.download import zip_adapter

TABS = ("Before / after", "Config", "Data", "Log", "Export")


def run_tabs(run: Run, config: TrainConfig) -> None:
    """Show the tabs; only the open one is computed."""
    contents = (_samples, _config, _data, _log, _export)
    tabs = st.tabs(TABS, key="tab", bind="query-params")
    for tab, content in zip(tabs, contents, strict=True):
        if tab.open:
            with tab:
                content(run, config)


def _samples(run: Run, config: TrainConfig) -> None:
    samples = run_files.samples(run)
    if not samples:
        st.info(
            "Answers to a few openings of the data, before and after training, appear here once "
            "the run has made them."
            if config.sample_prompts
            else "This run was asked for no samples (setting Sample prompts).",
            icon=":material/forum:",
        )
        return
    st.caption("The model's own answers, greedily decoded: what differs is the adapter's doing.")
    render_samples(run, samples)
    render_changes(run_files.changes(run))


def _config(run: Run, config: TrainConfig) -> None:
    rows = labelled(config)
    # A plain table: its lines wrap, so that no explanation is cut.
    st.table(
        pd.DataFrame(
            [[plain(cell) for cell in row] for row in rows],
            columns=["setting", "value", "what it does"],
        ),
        hide_index=True,
        border="horizontal",
        alt="The run's settings.",
    )


def _data(run: Run, config: TrainConfig) -> None:
    conversations = run_files.snapshot(run)
    if not conversations:
        st.info("The run's folder is gone, and its copy of the data with it.")
        return
    if hides_from(auth.current_user(), data.project_settings()):
        st.info(
            "The scores that this run learnt from are hidden: scoring is blind.",
            icon=":material/visibility_off:",
        )
        return
    turns = preview(conversations, config).turns
    rewards, advantages = st.columns(2)
    with rewards:
        show_chart(data_chart(turns, "reward"))
    with advantages:
        show_chart(data_chart(turns, "advantage"))
    known = run_metrics(run).first
    turn_table(
        turns,
        tokens={place: (row.tokens, row.response_tokens) for place, row in known.items()},
        replies={
            (index, turn): message.content
            for index, conversation in enumerate(conversations)
            for turn, message in enumerate(conversation.assistant_messages)
        },
        limit=config.max_context_tokens,
        key="run_turns",
    )


def _log(run: Run, config: TrainConfig) -> None:
    del config
    fragment(None if run.status.has_ended else "5s")(_log_lines)(run)


def _log_lines(run: Run) -> None:
    text = run_files.log_tail(run)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"The last {run_files.LOG_LINES} lines of run.log", width="stretch")
        st.button("Refresh", icon=":material/refresh:", key="refresh_log")
        st.download_button(
            "The whole log",
            run_files.folder(run.id).whole_log,
            f"everyturn-run-{run.id}.log",
            "text/plain",
            icon=":material/download:",
            on_click="ignore",
            key="download_log",
        )
    if text:
        st.code(text, language=None, wrap_lines=True, height=420)
    else:
        st.info("The run has not printed anything yet.")


def _export(run: Run, config: TrainConfig) -> None:
    del config
    if not auth.is_admin():
        st.info("Only admins take files away. Ask one of them.", icon=":material/lock:")
        return
    folder = run_files.folder(run.id)
    stem = f"everyturn-run-{run.id}"
    has_adapter = folder.adapter.is_dir()
    st.markdown(
        "The adapter in PEFT's own format, with tokenizer, chat template, model card and the run's "
        "configuration: it loads with `PeftModel.from_pretrained`."
        if has_adapter
        else "The adapter can be downloaded here once the run has finished."
    )
    with st.container(horizontal=True):
        if has_adapter:
            st.download_button(
                "Adapter (zip)",
                for_admins("adapter", lambda: zip_adapter(folder.path)),
                f"{stem}-adapter.zip",
                "application/zip",
                type="primary",
                icon=":material/download:",
                on_click="ignore",
                key="download_adapter",
            )
    if has_adapter:
        st.divider()
        render_exports(run)
        st.divider()
    if run_metrics(run).last_step is None:
        return
    st.markdown("**Figures**, of each turn in each step, and of each optimiser step:")
    with st.container(horizontal=True):
        for what, read in (("turns", data.turn_metrics), ("steps", data.step_metrics)):
            for name, kind, write in (
                ("CSV", "csv", run_files.as_csv),
                ("JSON lines", "jsonl", run_files.as_json_lines),
            ):
                st.download_button(
                    f"{what.capitalize()} ({name})",
                    for_admins("figures", partial(_written, write, read, run.id)),
                    f"{stem}-{what}.{kind}",
                    "text/csv" if kind == "csv" else "application/jsonl",
                    icon=":material/table:" if kind == "csv" else ":material/data_object:",
                    on_click="ignore",
                    key=f"download_{what}_{kind}",
                )
    if folder.events.is_dir():
        st.caption("For TensorBoard: its event files are in the run's folder.")
        st.code(f"tensorboard --logdir {folder.events}", language="bash")


def _written(write: Callable[[Any], str], read: Callable[[int], Sequence[Any]], run_id: int) -> str:
    """Return a run's figures as a file's text, read when somebody asks for it."""
    return write(read(run_id))
