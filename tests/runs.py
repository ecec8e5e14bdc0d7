"""A whole run in a folder of its own, in this process: data in, metrics and adapter out."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from db.enums import Role
from db.formats import write
from db.records import Conversation, Message, Score
from db.settings import Settings
from trainer.config import TrainConfig
from trainer.runs.folder import RunFolder, write_json, write_text
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder


def prepare(out: Path, conversations: Sequence[Conversation], config: TrainConfig) -> RunFolder:
    """Write what a run needs into `out`."""
    out.mkdir(parents=True)
    folder = RunFolder(out)
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(conversations, "native"))
    return folder


def rows_of(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the rows of a run's `metrics.jsonl`."""
    return [json.loads(line) for line in folder.metrics.read_text(encoding="utf-8").splitlines()]


def run(
    out: Path, conversations: Sequence[Conversation], config: TrainConfig, settings: Settings
) -> list[dict[str, Any]]:
    """Train in `out` and return the rows of `metrics.jsonl`."""
    folder = prepare(out, conversations, config)
    run_folder(folder, FileRecorder(folder.metrics, output=io.StringIO()), settings)
    return rows_of(folder)


def scored(*said: tuple[str, str, float | None], system: str = "") -> Conversation:
    """Return a conversation from (user text, reply, score) triples."""
    messages = []
    for user, reply, value in said:
        scores = () if value is None else (Score(rater="test", value=value),)
        messages.append(Message(role=Role.USER, content=user))
        messages.append(Message(role=Role.ASSISTANT, content=reply, scores=scores))
    return Conversation(messages=tuple(messages), system=system)
