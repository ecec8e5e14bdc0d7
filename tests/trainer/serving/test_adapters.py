"""Adapters that do not fit are refused by name and reason; nothing outside the runs is reached."""

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.conftest import TinyModels
from tests.trainer.serving.conftest import Endpoint, train_adapter
from trainer.errors import ConfigError
from trainer.runs.folder import RunFolder
from trainer.serving.adapters import parse_named

QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of France?"}]
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


@pytest.fixture
def spoilt(endpoint: Endpoint) -> Iterator[Path]:
    """A copy of the good adapter, as `run-8`, to be spoilt."""
    run = RunFolder(endpoint.settings.run_dir(8))
    shutil.copytree(RunFolder(endpoint.settings.run_dir(7)).adapter, run.adapter)
    yield run.adapter
    shutil.rmtree(run.path)


def change_config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / CONFIG).read_text())
        (folder / CONFIG).write_text(json.dumps(config | changes))

    return change


def change_weights(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        name = min(weights)
        weights[name] = change(weights[name]).contiguous()
        save_file(weights, folder / WEIGHTS)

    return apply


def rename_a_layer(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    name = min(weights)
    weights[name.replace("layers.0", "layers.90")] = weights.pop(name)
    save_file(weights, folder / WEIGHTS)


def put_a_pickle_in_its_place(folder: Path) -> None:
    class Attack:
        def __reduce__(self) -> Any:
            return (Path.touch, (folder / "attacked",))

    (folder / WEIGHTS).unlink()
    (folder / "adapter_model.bin").write_bytes(pickle.dumps(Attack()))


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "another base": (change_config(base_model_name_or_path="owner/other"), "owner/other"),
    "half a file": (lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:90]), "read"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "cannot be read"),
    "no config": (lambda f: (f / CONFIG).unlink(), "cannot be read"),
    "config no JSON": (lambda f: (f / CONFIG).write_text("{"), "cannot be read"),
    "config a list": (lambda f: (f / CONFIG).write_text("[]"), "cannot be read"),
    "endless rank": (change_config(r=float("inf")), "rank"),
    "rank a text": (change_config(r="4"), "rank"),
    "alpha beyond all numbers": (change_config(lora_alpha=10**400), "alpha"),
    "alpha not a number": (change_config(lora_alpha=float("nan")), "alpha"),
    "config too deep": (lambda f: (f / CONFIG).write_text("[" * 100_000), "cannot be read"),
    "base no text": (change_config(base_model_name_or_path=["a"]), "no LoRA"),
    "base that no text can hold": (change_config(base_model_name_or_path="\ud800"), "\ufffd"),
    "weights beyond all numbers": (change_weights(lambda w: w * 0 + 3e38), "NaN or Inf"),
    "not a number": (change_weights(lambda w: w * float("nan")), "NaN"),
    "other shape": (change_weights(lambda w: w[:, :-1]), "shapes do not fit"),
    "other layer": (rename_a_layer, "has no layer"),
    "other kind": (change_config(peft_type="IA3"), "no LoRA"),
    "DoRA": (change_config(use_dora=True), "use_dora"),
    "pickle": (put_a_pickle_in_its_place, "cannot be read"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_adapter_is_refused_by_name_with_the_reason(
    endpoint: Endpoint, spoilt: Path, fault: str
) -> None:
    spoil, reason = FAULTS[fault]
    spoil(spoilt)
    with pytest.raises(openai.BadRequestError, match=reason) as refused:
        endpoint.client().chat.completions.create(model="run-8", messages=QUESTION)
    assert "run-8" in str(refused.value) and refused.value.code == "adapter_refused"
    assert not (spoilt / "attacked").exists()
    good = endpoint.client().chat.completions.create(model="run-7", messages=QUESTION, max_tokens=2)
    assert good.choices[0].message.role == "assistant"
    assert "run-7" in [model.id for model in endpoint.client().models.list().data]


def test_an_adapter_of_another_base_model_is_listed_apart_with_the_reason(
    endpoint: Endpoint, spoilt: Path
) -> None:
    change_config(base_model_name_or_path="owner/other")(spoilt)
    listed = endpoint.client().models.list()
    assert "run-8" not in [model.id for model in listed.data]
    assert listed.model_extra is not None
    (refused,) = listed.model_extra["refused"]
    assert refused["id"] == "run-8" and "owner/other" in refused["reason"]


def test_a_model_is_told_by_its_name_or_why_it_cannot_be(endpoint: Endpoint, spoilt: Path) -> None:
    models = endpoint.client().models
    assert [models.retrieve(name).id for name in ("base", "run-7", "run-8")] == [
        "base",
        "run-7",
        "run-8",
    ]
    change_config(base_model_name_or_path="owner/other")(spoilt)
    with pytest.raises(openai.BadRequestError, match="owner/other"):
        models.retrieve("run-8")
    with pytest.raises(openai.NotFoundError, match="no such model"):
        models.retrieve("run-9")


def test_a_new_adapter_under_an_old_name_is_loaded_anew(
    endpoint: Endpoint, spoilt: Path, tiny_models: TinyModels
) -> None:
    def answer() -> Any:
        return endpoint.client().chat.completions.create(
            model="run-8", messages=QUESTION, max_tokens=3, temperature=0
        )

    before = answer()
    assert answer().choices == before.choices
    shutil.rmtree(spoilt)
    train_adapter(endpoint.settings, tiny_models("llama"), 8, seed=99)
    after = answer()
    assert after.system_fingerprint != before.system_fingerprint
    assert after.choices != before.choices


@pytest.mark.parametrize("text", ["a/b=x", "../a=x", "base=x", "x", "x=", "=x", "a b=x", ".=x"])
def test_unsafe_names_for_further_adapters_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--adapter"):
        parse_named([text])


def test_a_name_given_twice_is_refused() -> None:
    assert parse_named(["a=/x", "b=/y"]) == {"a": Path("/x"), "b": Path("/y")}
    with pytest.raises(ConfigError):
        parse_named(["a=/x", "a=/y"])
