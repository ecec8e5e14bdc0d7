"""The ways through a model: each gives the oracle's numbers, recomputed layers change none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.conftest import TinyModels
from tests.subject import (
    Subject,
    assert_engine_equals_oracle,
    dialogue,
    load_subject,
    rendered_turns,
)
from trainer.choices import Rendering
from trainer.engine.forward import Way

CONVERSATIONS = [dialogue(5, seed=3), dialogue(3, seed=4, system="Be kind."), dialogue(1, seed=5)]


@pytest.fixture(params=[Way.SHARED, Way.LLAMA])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    if request.param is Way.SHARED:
        monkeypatch.setattr("trainer.engine.llama.is_of_the_family", lambda _: False)
    return request.param


def load(folder: Path, scratch: Path, way: Way) -> Subject:
    subject = load_subject(folder, scratch)
    assert subject.policy._forward.way is way
    return subject


@pytest.mark.parametrize("model", ["llama", "qwen3"])
def test_each_way_equals_the_oracle(
    tiny_models: TinyModels, tmp_path: Path, model: str, way: Way
) -> None:
    subject = load(tiny_models(model), tmp_path, way)
    turns = rendered_turns(subject, CONVERSATIONS, Rendering.TEMPLATE)
    assert_engine_equals_oracle(subject, turns)


@pytest.mark.parametrize("model", ["llama", "qwen3"])
@pytest.mark.parametrize("layers", [1, 2])
def test_recomputed_layers_change_no_number(
    tiny_models: TinyModels, tmp_path: Path, model: str, way: Way, layers: int
) -> None:
    subject = load(tiny_models(model), tmp_path, way)
    turns = rendered_turns(subject, CONVERSATIONS, Rendering.TEMPLATE)
    kept = subject.pass_over(turns)
    memory = subject.policy._forward.activations
    assert memory.layers == 2
    tokens = subject.policy.computed_tokens
    subject.policy._forward.activations = replace(
        memory, limit_bytes=memory.needed_bytes(tokens, layers)
    )
    assert subject.policy._forward.activations.saving(tokens).recomputed_layers == layers
    again = subject.pass_over(turns)
    assert all(torch.equal(a, b) for a, b in zip(kept.logprobs, again.logprobs, strict=True))
    assert kept.gradients.keys() == again.gradients.keys()
    for name, gradient in kept.gradients.items():
        assert torch.equal(gradient, again.gradients[name])


def test_a_pass_that_goes_wrong_is_not_taken(
    tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.engine.llama._turn", lambda x, cos, sin, into: into.copy_(x))
    load(tiny_models("llama"), tmp_path, Way.SHARED)
    assert (
        "by a pass written" not in load_subject(tiny_models("llama"), tmp_path).policy.path_reason
    )


def test_a_wrong_derivative_is_found_out_too(
    tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silu_backward = torch.ops.aten.silu_backward
    monkeypatch.setattr(
        "trainer.engine.llama._GatedSilu.backward",
        staticmethod(lambda ctx, grad: (grad, grad * silu_backward(*ctx.saved_tensors))),
    )
    load(tiny_models("llama"), tmp_path, Way.SHARED)


def test_what_a_token_keeps_does_not_depend_on_the_pass(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    memory = load_subject(tiny_models("llama"), tmp_path).policy._forward.activations
    assert memory.kept_bytes > memory.layers * memory.input_bytes > 0
    assert memory.needed_bytes(200, 0) > memory.needed_bytes(200, 1) > memory.needed_bytes(100, 2)
