"""Compare: several runs side by side, what was set differently and what came of it."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import address, data, routes
from app.comparison import ComparedRun, common_prompts, compared, differences, final_figures
from app.components.charts_compare import compare_charts
from app.components.errors import fragment
from app.components.format import plain
from app.components.run_charts import show_chart
from app.components.run_status import REFRESH_S
from db.records import Run

MOST_RUNS = 6


def render() -> None:
    """Draw the page."""
    st.title("Compare runs", anchor=False)
    runs = {run.id: run for run in data.runs()}
    if len(runs) < 2:
        st.info(
            "Two runs or more can be laid side by side here: what was set differently, how they "
            "moved, and what their models say.",
            icon=":material/compare_arrows:",
        )
        st.page_link(routes.LAUNCH, label="Launch a run", icon=":material/rocket_launch:")
        return
    chosen = _choose(runs)
    if len(chosen) < 2:
        st.info("Choose two runs or more.", icon=":material/compare_arrows:")
        return
    live = any(not run.status.has_ended for run in chosen)
    fragment(2 * REFRESH_S if live else None)(_comparison)([run.id for run in chosen])


def _choose(runs: dict[int, Run]) -> list[Run]:
    """Ask which runs; the address names them."""
    chosen = st.multiselect(
        "Runs",
        list(runs),
        default=[id for id in dict.fromkeys(address.compared_ids()) if id in runs][:MOST_RUNS],
        format_func=lambda id: f"{runs[id].name} ({id}, {runs[id].status.value})",
        max_selections=MOST_RUNS,
        key="compared_runs",
        placeholder=f"Choose up to {MOST_RUNS} runs",
    )
    address.open_compared(chosen)
    return [runs[id] for id in chosen]


def _comparison(ids: Sequence[int]) -> None:
    current = {run.id: run for run in data.runs()}
    runs = [compared(current[id]) for id in ids if id in current]
    _settings(runs)
    _curves(runs)
    _figures(runs)
    _samples(runs)


def _settings(runs: Sequence[ComparedRun]) -> None:
    st.subheader("What was set differently", anchor=False)
    rows = differences([run.run for run in runs])
    if not rows:
        st.write("Nothing: same settings, same data.")
        return
    _table(dict(rows), runs, "The settings in which the runs differ.")


def _curves(runs: Sequence[ComparedRun]) -> None:
    charts = compare_charts(runs)
    if not charts:
        return
    st.subheader("How they moved", anchor=False)
    scope = "-".join(str(run.run.id) for run in runs)
    for start in range(0, len(charts), 2):
        for column, chart in zip(st.columns(2), charts[start : start + 2], strict=False):
            with column:
                show_chart(chart, scope)


def _figures(runs: Sequence[ComparedRun]) -> None:
    st.subheader("Where they stand", anchor=False)
    figures = [final_figures(run) for run in runs]
    rows = {name: [one[name] for one in figures] for name in figures[0]}
    known = {name: values for name, values in rows.items() if set(values) != {"–"}}
    _table(known, runs, "The final figures of each run.")


def _samples(runs: Sequence[ComparedRun]) -> None:
    prompts = common_prompts(runs)
    if not prompts:
        return
    st.subheader("What they say", anchor=False)
    st.caption("Greedily decoded answers to openings from the data: what differs is the training.")
    for sample, answers in prompts:
        with st.container(border=True):
            for role, content in sample.prompt:
                st.caption(role)
                st.text(content, width="stretch")
            columns = st.columns(len(runs) + 1)
            with columns[0]:
                st.markdown("**Base model**")
                st.text(sample.before or "(empty)", width="stretch")
            for column, run, answer in zip(columns[1:], runs, answers, strict=True):
                with column:
                    st.markdown(f"**{plain(run.label)}**")
                    st.text("–" if answer is None else answer or "(empty)", width="stretch")


def _table(rows: dict[str, list[str]], runs: Sequence[ComparedRun], alt: str) -> None:
    frame = pd.DataFrame(
        [[plain(name), *(plain(value) for value in values)] for name, values in rows.items()],
        columns=["", *(plain(run.label) for run in runs)],
    )
    st.table(frame, hide_index=True, border="horizontal", alt=alt)


render()
