"""The memory limit of a pass: layers are computed again to stay below it, with the same numbers."""

from pathlib import Path

import pytest
import torch

from db.settings import Settings
from trainer.engine.client import ServiceClient, TrainingClient
from trainer.engine.types import AdamParams, Datum, ModelInput, TensorData
from trainer.errors import OutOfMemoryError

LENGTH = 96
ADAM = AdamParams(learning_rate=1e-2)


def client(settings: Settings, folder: Path, limit_bytes: float = 0.0) -> TrainingClient:
    return ServiceClient(device="cpu", settings=settings).create_lora_training_client(
        str(folder), rank=4, seed=3, memory_limit_gb=limit_bytes / 1e9
    )


def text(length: int = LENGTH) -> Datum:
    ids = [20 + index * 7 % 300 for index in range(length + 1)]
    return Datum(
        ModelInput.from_ints(ids[:-1]), {"target_tokens": TensorData.from_list(ids[1:], "int64")}
    )


def test_a_pass_beyond_the_limit_recomputes_layers_and_learns_the_same(
    settings: Settings, tiny_llama: Path
) -> None:
    free = client(settings, tiny_llama)
    needed = free._policy.activations.needed_bytes
    assert free._policy.activations.layers_to_recompute(LENGTH) == 0
    tight = client(settings, tiny_llama, needed(LENGTH, free._policy.activations.layers))
    assert tight._policy.activations.layers_to_recompute(LENGTH) == tight._policy.activations.layers
    for each in (free, tight):
        each.forward_backward([text()], "cross_entropy").result()
        each.optim_step(ADAM).result()
    ours, theirs = free._policy.tensors(), tight._policy.tensors()
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)


def test_a_pass_that_no_recomputing_makes_fit_is_refused_with_the_setting_to_lower(
    settings: Settings, tiny_llama: Path
) -> None:
    tight = client(settings, tiny_llama, limit_bytes=1e6)
    with pytest.raises(OutOfMemoryError, match="token_budget"):
        tight.forward_backward([text(400)], "cross_entropy").result()
