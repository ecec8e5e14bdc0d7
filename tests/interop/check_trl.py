"""Exports come out as TRL's trainers take them: each is loaded and trained on for one batch.

Not part of the test suite, because it needs packages that nothing else does: `make trl`.
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset, load_dataset
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trl import (
    DPOConfig,
    DPOTrainer,
    KTOConfig,
    KTOTrainer,
    RewardConfig,
    RewardTrainer,
    SFTConfig,
    SFTTrainer,
)

from db.enums import Role
from db.formats import write_to
from db.records import Conversation, Message, Score
from tests.models import write_tiny_model


def reply(text: str, value: float | None = None, **facts: Any) -> Message:
    scores = () if value is None else (Score(rater="ann", value=value),)
    return Message(role=Role.ASSISTANT, content=text, scores=scores, **facts)


def ask(text: str) -> Message:
    return Message(role=Role.USER, content=text)


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}
TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Finds an order.",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}},
    },
}


def talks() -> list[Conversation]:
    """Branches of two prompts, one of them with a system prompt, a tool and its call."""
    begun = (
        ask("Where is my order?"),
        reply("", tool_calls=(CALL,)),
        Message(role=Role.TOOL, content="at the neighbour's", tool_call_id="c1"),
    )
    return [
        *(
            Conversation(messages=(ask("What is the capital of France?"), reply(text, value)))
            for text, value in (("Paris.", 1.0), ("I am sorry.", 0.25), ("No.", -1.0))
        ),
        *(
            Conversation(system="Be brief.", tools=(TOOL,), messages=(*begun, reply(text, value)))
            for text, value in (("Your neighbour has it.", 0.9), ("Let me look.", 0.1))
        ),
    ]


def exported(format: str, folder: Path) -> Dataset:
    """Write the talks in a format and load the file with `datasets`."""
    path = folder / f"{format}.jsonl"
    with path.open("wb") as stream:
        write_to(talks(), format, stream)
    return load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(folder / "cache")
    )


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    return write_tiny_model("llama", tmp_path / "model")


def trained_one_batch(trainer: Any) -> None:
    """Train for one batch; the loss must be a number and a weight must move."""
    name, parameter = next(
        (name, p) for name, p in trainer.model.named_parameters() if "q_proj" in name
    )
    before = parameter.detach().clone()
    result = trainer.train()
    assert trainer.state.global_step == 1
    assert result.training_loss == result.training_loss and abs(result.training_loss) < 100
    assert not torch.equal(before, dict(trainer.model.named_parameters())[name])


def common(folder: Path) -> dict[str, Any]:
    return {
        "output_dir": str(folder / "out"),
        "max_steps": 1,
        "per_device_train_batch_size": 4,
        "learning_rate": 0.01,
        "lr_scheduler_type": "constant",
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
    }


def test_kto_takes_the_kto_export(model_folder: Path, tmp_path: Path) -> None:
    data = exported("kto", tmp_path)
    assert data["label"] == [True, False, False, True, False]
    assert data["tools"] == [None, None, None, *[json.dumps([TOOL])] * 2]
    trained_one_batch(
        KTOTrainer(
            model=AutoModelForCausalLM.from_pretrained(model_folder),
            args=KTOConfig(**common(tmp_path)),
            train_dataset=data,
            processing_class=AutoTokenizer.from_pretrained(model_folder),
        )
    )


def test_dpo_takes_the_preference_export(model_folder: Path, tmp_path: Path) -> None:
    data = exported("preference", tmp_path)
    assert len(data) == 4
    trained_one_batch(
        DPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(model_folder),
            args=DPOConfig(**common(tmp_path)),
            train_dataset=data,
            processing_class=AutoTokenizer.from_pretrained(model_folder),
        )
    )


def test_a_reward_model_takes_the_preference_export(model_folder: Path, tmp_path: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(model_folder, num_labels=1)
    trained_one_batch(
        RewardTrainer(
            model=model,
            args=RewardConfig(**common(tmp_path)),
            train_dataset=exported("preference", tmp_path),
            processing_class=AutoTokenizer.from_pretrained(model_folder),
        )
    )


def test_sft_takes_the_scored_completions(model_folder: Path, tmp_path: Path) -> None:
    data = exported("completions", tmp_path)
    assert data["score"] == [1.0, 0.25, -1.0, 0.9, 0.1]
    trained_one_batch(
        SFTTrainer(
            model=AutoModelForCausalLM.from_pretrained(model_folder),
            args=SFTConfig(**common(tmp_path)),
            train_dataset=data,
            processing_class=AutoTokenizer.from_pretrained(model_folder),
        )
    )


def test_the_data_set_folder_is_loaded_by_its_name(tmp_path: Path) -> None:
    stream = io.BytesIO()
    write_to(talks(), "datasets", stream)
    zipfile.ZipFile(stream).extractall(tmp_path)
    data = load_dataset(str(tmp_path / "dataset"), split="train", cache_dir=str(tmp_path / "cache"))
    assert [len(messages) for messages in data["messages"]] == [2, 2, 2, 4, 4]
    assert data[0]["messages"][1]["scores"][0]["value"] == 1.0
