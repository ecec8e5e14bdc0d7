"""A run's samples ask the model what a chat would ask it, the conversation's tools included."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from transformers import AutoTokenizer

from tests.conftest import TinyModels
from tests.runs import scored
from trainer.config import TrainConfig
from trainer.engine.types import ModelInput
from trainer.engines import Engine
from trainer.runs.folder import RunFolder, write_json
from trainer.samples import choose_openings, sample_after

TOOL = {"type": "function", "function": {"name": "order"}}


class Listening:
    """A model that says nothing and keeps what it is asked."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.asked: list[list[int]] = []

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    def save_weights_and_get_sampling_client(self) -> "Listening":
        return self

    def sample(self, prompt: ModelInput, *_: Any) -> Any:
        self.asked.append(prompt.to_ints())
        return SimpleNamespace(
            result=lambda: SimpleNamespace(sequences=[SimpleNamespace(tokens=[])])
        )


def test_the_tools_of_a_conversation_stand_in_the_prompt_of_its_sample(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_models("llama"))
    tokenizer.chat_template = (
        "{%- for tool in tools or [] -%}{{ tool.function.name + ';' }}{%- endfor -%}"
        + tokenizer.chat_template
    )
    talk = scored(("Where is my order?", "Let me look.", 0.5))
    openings = choose_openings([talk, talk, replace(talk, tools=(TOOL,))], 9)
    assert [opening.tools for opening in openings] == [(), (TOOL,)]
    folder = RunFolder(tmp_path)
    write_json(folder.samples, [{**opening.to_json(), "before": ""} for opening in openings])
    model = Listening(tokenizer)
    config = TrainConfig.from_json({"base_model": "tiny"})
    sample_after([], config, cast(Engine, model), folder)
    without, given = model.asked
    assert given == [*tokenizer.encode("order;"), *without]
    assert [s.get("tools") for s in json.loads(folder.samples.read_text())] == [None, [TOOL]]
