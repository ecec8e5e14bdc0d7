"""A run answers the fixed set before and after training, and measures replies it never saw."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path

from db import commands
from db.engine import open_database
from db.formats import write
from db.settings import Settings
from tests.runs import scored
from trainer.config import TrainConfig
from trainer.evaluating.held import evaluation_set, freeze_evaluation, read_evaluation
from trainer.runs.folder import RunFolder, write_json, write_text
from trainer.runs.recorder import FileRecorder
from trainer.runs.worker import run_folder

DATA = [
    scored(("Hi", "Good day!", 1.0), ("The price?", "Ten per cent off.", 0.5)),
    scored(("Where is my order?", "I am sorry, let me look.", -0.8)),
]
HELD_OUT = scored(("Who are you", "A model of the language.", 0.3), ("Really?", "yes", None))


def test_the_set_is_answered_and_its_scored_replies_are_measured(
    tiny_llama: Path, settings: Settings
) -> None:
    database = open_database(settings)
    commands.add_conversations(database, [replace(HELD_OUT, tags=("held",)), *DATA])
    commands.change_project_settings(
        database, {"evaluation_prompts": "Is it far?\n", "evaluation_tag": "held"}
    )
    found = [conversation.messages[0].content for conversation in evaluation_set(database)]
    assert found == ["Is it far?", "Who are you"]
    folder = RunFolder(settings.run_dir(1))
    folder.path.mkdir(parents=True)
    freeze_evaluation(database, folder)
    assert len(read_evaluation(folder)) == 2
    fields = {"epochs": 1, "sample_prompts": 1, "sample_tokens": 4, "learning_rate": 0.01}
    config = TrainConfig.from_json({"base_model": str(tiny_llama), "device": "cpu", **fields})
    write_json(folder.config, config.to_json())
    write_text(folder.data, write(DATA, "native"))
    run_folder(folder, FileRecorder(folder.metrics, output=io.StringIO()), settings)
    samples = json.loads(folder.samples.read_text())
    assert [sample["held_out"] for sample in samples] == [True, True, False]
    assert all(isinstance(s["before"], str) and isinstance(s["after"], str) for s in samples)
    (change,) = json.loads(folder.changes.read_text())
    assert (change["text"], change["reward"]) == ("A model of the language.", 0.3)
    assert math.isfinite(change["before"])
    assert change["after"] != change["before"]
