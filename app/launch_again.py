"""A run again, with changes: what an address like `?from_run=7&set=token_budget:1024` asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import address, data, run_files
from app.routes import FROM_RUN_PARAM
from db.records import Run
from trainer.assignments import parse_assignments
from trainer.config import TrainConfig

CHANGES_PARAM = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A run that the launch page begins from.

    Attributes:
        run: The earlier run.
        config_before: Its configuration.
        config: The same with the changes made.
        changes: The settings that the address changes, with their new values.
        conversation_ids: Those of its conversations that are still there, in its order.
    """

    run: Run
    config_before: TrainConfig
    config: TrainConfig
    changes: Mapping[str, Any]
    conversation_ids: tuple[int, ...]

    @property
    def is_next_round(self) -> bool:
        """Whether the new run is to start from the adapter of the earlier one."""
        return self.config.start_from == str(self.run.id)

    @property
    def origin(self) -> str:
        """A name for this request: the form keeps what is typed for each apart."""
        return "_".join([f"run{self.run.id}", *(f"{k}:{v}" for k, v in self.changes.items()), ""])


def params(run_id: int, changes: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the launch page's address parameters that ask for a run again, with changes."""
    asked = {FROM_RUN_PARAM: str(run_id)}
    if changes:
        asked[CHANGES_PARAM] = ",".join(f"{name}:{value}" for name, value in changes.items())
    return asked


def requested() -> Again | None:
    """Return the run that the address asks for again; None if it asks for none.

    Raises:
        NotFoundError: if that run is gone.
        ConfigError: if its settings, or the changes, are none that this version knows.
    """
    run_id = address.from_run_id()
    if run_id is None:
        return None
    run = data.run(run_id)
    text = st.query_params.get(CHANGES_PARAM, "")
    pairs = [pair.replace(":", "=", 1) for pair in text.split(",") if pair]
    changes = parse_assignments(pairs)
    before = TrainConfig.from_json(run.config)
    return Again(
        run=run,
        config_before=before,
        config=before.replace(**changes),
        changes=changes,
        conversation_ids=data.ids_of_same(run_files.snapshot(run)),
    )
