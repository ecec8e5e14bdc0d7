"""The launch page's question what the new adapter begins as: nothing yet, or an earlier run's."""

from typing import Any

import streamlit as st

from app import data, run_files
from app.components.format import plain, shortened
from app.launch_again import Again
from db.enums import RunStatus
from db.records import Run
from trainer.config import TrainConfig
from trainer.errors import ConfigError

BASE = ""


def choose_start(base_model: str, again: Again | None) -> dict[str, Any]:
    """Ask for the adapter to go on from; return the settings that the choice decides.

    An earlier adapter brings its rank and alpha along: with others it would be another policy.
    """
    runs = {str(run.id): run for run in runs_to_start_from(base_model)}
    asked = again.config.start_from if again else BASE
    if asked not in (BASE, *runs):
        st.warning(
            f"The adapter of run {plain(asked)} is no longer there, or belongs to another base "
            "model. This run starts from the base model.",
            icon=":material/history:",
        )
    if not runs:
        return {"start_from": BASE}
    names = [BASE, *runs]
    chosen = st.selectbox(
        "Start from",
        names,
        index=names.index(asked) if asked in names else 0,
        format_func=lambda name: _label(runs.get(name)),
        key="start_from",
        bind="query-params",
        help="The base model, or what an earlier run has learned: then this run is its next round. "
        "The adapter is copied, so the earlier run may be deleted later. KL is that to the base "
        "model in either case.",
    )
    if chosen not in runs:
        return {"start_from": BASE}
    earlier = TrainConfig.from_json(runs[chosen].config)
    return {
        "start_from": chosen,
        "lora_rank": earlier.lora_rank,
        "lora_alpha": earlier.lora_alpha,
    }


def runs_to_start_from(base_model: str) -> list[Run]:
    """Return the finished runs with an adapter for this base model, newest first."""
    return [
        run
        for run in data.runs_with_status(RunStatus.FINISHED)[::-1]
        if run.base_model == base_model and _is_usable(run)
    ]


def _is_usable(run: Run) -> bool:
    try:
        TrainConfig.from_json(run.config)
    except ConfigError:  # a run of another version of the product
        return False
    return run_files.folder(run.id).adapter.is_dir()


def _label(run: Run | None) -> str:
    return "base model" if run is None else f"adapter of run {run.id} · {shortened(run.name, 40)}"
