"""What the pages read from a run's folder: its data, samples, log and files to take away."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import streamlit as st

from app import data
from db import formats
from db.records import Conversation, Run, StepMetric, TurnMetric
from trainer.errors import CheckpointError
from trainer.evaluating.judging import Judgements, read_judgements
from trainer.evaluating.reply_change import ReplyChange
from trainer.runs import lineage
from trainer.runs.checkpoint import Judgement
from trainer.runs.folder import RunFolder, read_json

LOG_LINES = 200

UNREADABLE = (CheckpointError, AttributeError, KeyError, TypeError)
"""What a file raises that is damaged, or was written by something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One opening with the model's answers before and after training.

    Attributes:
        held_out: Whether it is of the fixed set that every run answers.
        tools: The functions that the model was told it may call.
    """

    prompt: tuple[tuple[str, str], ...]
    before: str
    after: str | None
    held_out: bool = False
    tools: tuple[dict[str, Any], ...] = ()


def folder(run_id: int) -> RunFolder:
    """Return the names of the run's files."""
    return RunFolder(data.settings().run_dir(run_id))


def snapshot(run: Run) -> tuple[Conversation, ...]:
    """Return the run's frozen data; empty if the folder is gone."""
    path = folder(run.id).data
    return _parse(str(path), run.snapshot_sha256) if path.exists() else ()


@st.cache_data(max_entries=8, show_spinner=False)
def _parse(path: str, sha256: str) -> tuple[Conversation, ...]:
    del sha256  # part of the cache's key
    return formats.parse(Path(path).read_bytes(), format="native").conversations


def titles(run: Run) -> dict[int, str]:
    """Return the title of each conversation by its position in the run's data."""
    return {
        index: conversation.title or f"conversation {index + 1}"
        for index, conversation in enumerate(snapshot(run))
    }


def samples(run: Run) -> list[Sample]:
    """Return the before and after samples, empty before they have been made."""
    path = folder(run.id).samples
    if not path.exists():
        return []
    try:
        return [_sample(entry) for entry in read_json(path)]
    except UNREADABLE:
        return []


def _sample(entry: dict[str, Any]) -> Sample:
    return Sample(
        prompt=tuple((message["role"], message["content"]) for message in entry["prompt"]),
        before=entry["before"],
        after=entry["after"],
        held_out=entry.get("held_out", False),
        tools=tuple(entry.get("tools", ())),
    )


def changes(run: Run) -> list[ReplyChange]:
    """Return how training changed held-out replies; empty if there are none."""
    path = folder(run.id).changes
    if not path.exists():
        return []
    try:
        return [ReplyChange(**entry) for entry in read_json(path)]
    except UNREADABLE:
        return []


def judge(run: Run) -> Judgements | None:
    """Return what the automatic judge said of the samples; None if it was never asked."""
    return read_judgements(folder(run.id))


def judgements(run: Run) -> list[Judgement]:
    """Return what the held-out conversations said of each epoch so far; empty without any."""
    return lineage.judgements(folder(run.id))


def log_tail(run: Run, lines: int = LOG_LINES) -> str:
    """Return the last lines of the run's log."""
    return folder(run.id).log_tail(lines)


def as_csv(rows: Sequence[TurnMetric] | Sequence[StepMetric]) -> str:
    """Return figures as CSV with a header line; an empty text without any."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(rows[0])])
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def as_json_lines(rows: Sequence[TurnMetric] | Sequence[StepMetric]) -> str:
    """Return figures as one JSON object a line."""
    return "".join(f"{json.dumps(asdict(row))}\n" for row in rows)
