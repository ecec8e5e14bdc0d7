"""Run: one training run, live while it goes on, with everything it left behind afterwards."""

import streamlit as st

from app import address, data, routes, run_files
from app.components.errors import fragment, show_error, show_failure
from app.components.held_out import held_out_line
from app.components.run_charts import run_charts
from app.components.run_header import render_facts, render_progress, render_title
from app.components.run_lineage import offer_next_round, render_lineage
from app.components.run_news import mark_seen
from app.components.run_status import REFRESH_S
from app.components.run_tabs import run_tabs
from app.metrics import run_metrics
from db.errors import NotFoundError
from db.records import Run
from trainer.config import TrainConfig
from trainer.errors import ConfigError


def render() -> None:
    """Draw the page."""
    run_id = address.run_id()
    if run_id is None:
        _nothing("This page shows one run. Choose it from the list.")
        return
    try:
        run = data.run(run_id)
    except NotFoundError:
        _nothing(f"There is no run {run_id} (any more). It may have been deleted.")
        return
    mark_seen(run)
    render_title(run)
    try:
        config = TrainConfig.from_json(run.config)
    except ConfigError as error:
        # A run of another version of the product: its rows are kept, its settings cannot be read.
        show_error(error)
        return
    offer_next_round(run)
    render_lineage(run)
    live = not run.status.has_ended
    fragment(REFRESH_S if live else None)(_live)(run, config)
    run_tabs(run, config)


def _nothing(text: str) -> None:
    st.title("Run")
    st.info(text, icon=":material/search_off:")
    st.page_link(routes.RUNS, label="All runs", icon=":material/monitoring:")
    st.page_link(routes.LAUNCH, label="Launch a run", icon=":material/rocket_launch:")


def _live(drawn: Run, config: TrainConfig) -> None:
    """Draw what changes while the run goes on; a new status redraws the whole page."""
    try:
        run = data.run(drawn.id)
    except NotFoundError:
        st.rerun()
    if (run.status, run.attempt) != (drawn.status, drawn.attempt):
        st.rerun()
    show_failure()
    render_facts(run, config)
    render_progress(run, config)
    live = not run.status.has_ended
    metrics = run_metrics(run)
    if metrics.first:
        held_out_line(run_files.judgements(run), has_ended=not live)
        run_charts(run, metrics, config, run_files.titles(run))
    elif not live:
        st.info("This run ended before it measured anything.", icon=":material/show_chart:")
    elif run.status.has_process:
        st.info(
            "The first figures arrive after the first pass through the model; this page updates "
            "by itself. You can close it: the run does not need it.",
            icon=":material/show_chart:",
        )


render()
