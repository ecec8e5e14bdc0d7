"""Every kind of model answers with its own numbers: rows side by side where a trial confirms it."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from db.settings import Settings
from tests.conftest import TinyModels
from trainer.engine.adapter import read_adapter_tensors
from trainer.engine.client import ServiceClient
from trainer.models import load_base_model
from trainer.serving.passes import (
    Passes,
    Piece,
    RowPasses,
    SinglePasses,
    adaptable_layers,
    choose_passes,
    multiply_few_rows_fast,
)
from trainer.serving.rows import RowAdapters, Update

PROMPTS = ([5, 9, 40, 41, 7, 80, 3, 22, 61, 17, 30, 12], [6, 8, 10], [5, 9, 40, 77, 12])


def load(settings: Settings, folder: Path) -> tuple[PreTrainedModel, Passes]:
    model = load_base_model(settings, str(folder), device=torch.device("cpu"))
    passes = choose_passes(model, RowAdapters(model, adaptable_layers(model)))
    multiply_few_rows_fast(model)
    return model, passes


def expected_logits(folder: Path, tokens: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return AutoModelForCausalLM.from_pretrained(folder)(torch.tensor([tokens])).logits[0, -1]


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("llama", RowPasses),
        ("qwen3", RowPasses),
        ("mistral-sliding", SinglePasses),
        ("gemma3-sliding", SinglePasses),
        ("lfm2-conv", SinglePasses),
    ],
)
def test_prompts_in_parts_beside_each_other_give_each_models_own_logits(
    settings: Settings, tiny_models: TinyModels, name: str, way: type[Passes]
) -> None:
    folder = tiny_models(name)
    _, passes = load(settings, folder)
    assert isinstance(passes, way)
    stores = [passes.new_store() for _ in PROMPTS]
    passes.run([Piece(tuple(PROMPTS[0][:5]), stores[0]), Piece(tuple(PROMPTS[1]), stores[1])])
    logits = passes.run(
        [
            Piece((PROMPTS[2][0],), stores[2]),
            Piece(tuple(PROMPTS[0][5:]), stores[0]),
            Piece((33,), stores[1]),
        ]
    )
    wholes = (PROMPTS[2][:1], PROMPTS[0], [*PROMPTS[1], 33])
    for row, whole in zip(logits, wholes, strict=True):
        torch.testing.assert_close(row, expected_logits(folder, whole), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["llama", "gemma3-sliding"])
def test_a_copy_goes_its_own_way(settings: Settings, tiny_models: TinyModels, name: str) -> None:
    folder = tiny_models(name)
    _, passes = load(settings, folder)
    store = passes.new_store()
    passes.run([Piece((5, 9, 40, 41), store)])
    copy = store.prefix(4)
    assert copy is not None
    passes.run([Piece((7, 8), store)])
    logits = passes.run([Piece((70,), copy)])
    torch.testing.assert_close(
        logits[0], expected_logits(folder, [5, 9, 40, 41, 70]), atol=2e-5, rtol=1e-4
    )


def test_a_store_is_cut_back_and_grows_beyond_its_room(
    settings: Settings, tiny_models: TinyModels
) -> None:
    folder = tiny_models("llama")
    _, passes = load(settings, folder)
    store = passes.new_store()
    tokens = [5 + i % 300 for i in range(300)]
    passes.run([Piece(tuple(tokens[:200]), store)])
    passes.run([Piece(tuple(tokens[200:]), store)])  # the first room is for 256
    cut = store.prefix(150)
    assert cut is not None and store.prefix(0) is not None
    logits = passes.run([Piece((9,), cut)])
    expected = expected_logits(folder, [*tokens[:150], 9])
    torch.testing.assert_close(logits[0], expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["llama", "gemma3-sliding"])
def test_rows_of_two_adapters_and_the_base_do_not_touch_each_other(
    settings: Settings, tiny_models: TinyModels, tmp_path: Path, name: str
) -> None:
    folder = tiny_models(name)
    _, passes = load(settings, folder)
    updates = [_random_updates(settings, folder, tmp_path / str(seed), seed) for seed in (1, 2)]
    tokens = (5, 9, 40)
    together = passes.run(
        [
            Piece(tokens, passes.new_store(), updates[0]),
            Piece(tokens, passes.new_store()),
            Piece(tokens, passes.new_store(), updates[1]),
            Piece(tokens[:1], passes.new_store(), updates[0]),
        ]
    )
    alone = [
        passes.run([Piece(tokens, passes.new_store(), each)])[0]
        for each in (updates[0], None, updates[1])
    ]
    torch.testing.assert_close(together[:3], torch.stack(alone), atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(
        together[1], expected_logits(folder, list(tokens)), atol=2e-5, rtol=1e-4
    )
    assert (together[0] - together[2]).abs().max() > 1e-2


def _random_updates(settings: Settings, folder: Path, out: Path, seed: int) -> dict[str, Update]:
    client = ServiceClient(device="cpu", settings=settings).create_lora_training_client(
        str(folder), rank=4, seed=seed, train_unembed=False
    )
    client.save_weights_for_sampler(str(out)).result()
    tensors = read_adapter_tensors(out)
    generator = torch.Generator().manual_seed(seed)
    layers = {key.removeprefix("base_model.model.").rpartition(".lora_")[0] for key in tensors}
    found: dict[str, Update] = {}
    for layer in layers:
        down = tensors[f"base_model.model.{layer}.lora_A.weight"]
        up = tensors[f"base_model.model.{layer}.lora_B.weight"]
        noise = torch.randn(up.shape, generator=generator) * 0.3
        found[layer] = Update(down.T.contiguous(), noise.T.contiguous(), 2.0)
    return found
