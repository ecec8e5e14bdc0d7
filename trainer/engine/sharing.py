"""Whether a model may compute shared prefixes once, decided by its config and by trying it."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from trainer.engine.head import chosen_logprobs

Sequences = Sequence[Sequence[int]]

SCALED_BY_LENGTH = ("dynamic", "longrope")
"""Rotary embeddings that depend on the longest position of a pass, not on a token's own."""

TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
ROUNDED_TOLERANCE = 0.1
"""Largest mean difference in nats between two ways to compute the same logprobs.

A wrong mask or position moves them by whole nats; 16-bit rounding by some hundredths.
"""


def sharing_obstacle(model: PreTrainedModel) -> str | None:
    """Return why the model's layers rule out shared prefixes, None if they do not."""
    obstacle = config_obstacle(model.config)
    if obstacle is None and model.config._attn_implementation != "sdpa":
        return "transformers has no SDPA attention for it"
    return obstacle


def config_obstacle(model_config: PreTrainedConfig) -> str | None:
    """Return why a model's config rules out shared prefixes, None if it does not.

    A tree pass hands every layer one mask and one position for each token. That is exact only
    where each layer is full causal attention and rotary angles depend on nothing else.
    """
    config: dict[str, Any] = model_config.get_text_config().to_dict()
    layer_types = set(config.get("layer_types") or ())
    others = sorted(layer_types - {"full_attention"})
    if others:
        return f"some of its layers are {', '.join(others)}"
    if not layer_types and config.get("sliding_window") and config.get("use_sliding_window", True):
        return "its attention has a sliding window"
    rope: dict[str, Any] = config.get("rope_parameters") or {}
    if rope.get("rope_type") in SCALED_BY_LENGTH:
        return f"its rotary embedding ({rope['rope_type']}) depends on the longest sequence"
    return None


def probe_sequences(vocabulary: int) -> list[list[int]]:
    """Return sequences that share prefixes in every way: branch, extension, stranger."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (48,), generator=generator).tolist()
    trunk, left, right, stranger = ids[:12], ids[12:24], ids[24:36], ids[36:]
    return [trunk, trunk + left, trunk[:7] + right, stranger]


@torch.no_grad()
def plain_logprobs(model: PreTrainedModel, sequences: Sequences) -> list[Tensor]:
    """Return the logprob of each sequence's tokens after the first, one plain pass a sequence."""
    logprobs: list[Tensor] = []
    for sequence in sequences:
        ids_1T = torch.tensor([sequence], device=model.device)
        logits_TV = model(input_ids=ids_1T, use_cache=False).logits[0]
        logprobs.append(chosen_logprobs(logits_TV[:-1], ids_1T[0, 1:]))
    return logprobs


def agrees(
    model: PreTrainedModel, expected: Sequence[Tensor], compute: Callable[[], Sequence[Tensor]]
) -> bool:
    """Return whether another way to compute the same logprobs gives the same numbers."""
    with torch.no_grad():
        found = torch.cat(list(compute()))
    difference = (found - torch.cat(list(expected))).abs().mean()
    return bool(difference <= TOLERANCE.get(model.dtype, ROUNDED_TOLERANCE))
