"""What a pass keeps for its backward pass, and how many layers must be recomputed to make it fit.

Recomputing a layer (Chen et al. 2016, arXiv 1604.06174) keeps its input alone: a third more time
for a tenth of the memory, and the same numbers. Few layers are recomputed for a pass that is a
little too long, all of them for one that is much too long.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.errors import pass_too_large

PASSING_LAYERS = 3
"""The backward pass of a layer holds as much again as this many layers keep: its activations
once more, and gradients of the same width."""


SHORT_PASS_TOKENS = 1024
"""A pass of at most that many tokens is a twentieth faster without recipes, and takes little memory
anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a pass does to take less memory.

    Attributes:
        recomputed_layers: How many layers keep only their input and are computed again in the
            backward pass.
        recipes: Whether the others keep tensors that are cheap to compute again as their recipe.
    """

    recomputed_layers: int = 0
    recipes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationMemory:
    """The memory of a pass, as a function of its tokens.

    Attributes:
        layers: How many layers can be recomputed.
        kept_bytes: What a token keeps if none is, with recipes.
        input_bytes: What a token keeps in a layer that is recomputed.
        fixed_bytes: What any pass takes, whatever its length.
        limit_bytes: What a pass may take.
    """

    layers: int
    kept_bytes: int
    input_bytes: int
    fixed_bytes: int
    limit_bytes: float

    def needed_bytes(self, tokens: int, recomputed: int) -> float:
        """Return what a pass takes beyond weights and optimiser."""
        by_layer = self.kept_bytes / max(self.layers, 1)
        kept = self.kept_bytes - recomputed * (by_layer - self.input_bytes)
        return self.fixed_bytes + tokens * (kept + PASSING_LAYERS * by_layer)

    def saving(self, tokens: int) -> Saving:
        """Return how a pass fits; it saves no more than it must.

        Raises:
            OutOfMemoryError: if nothing is enough.
        """
        is_short = (
            tokens <= SHORT_PASS_TOKENS and 2 * self.needed_bytes(tokens, 0) < self.limit_bytes
        )
        return Saving(recomputed_layers=self.layers_to_recompute(tokens), recipes=not is_short)

    def layers_to_recompute(self, tokens: int) -> int:
        """Return the smallest number of recomputed layers with which a pass fits.

        Raises:
            OutOfMemoryError: if none is enough.
        """
        for recomputed in range(self.layers + 1):
            if self.needed_bytes(tokens, recomputed) <= self.limit_bytes:
                return recomputed
        needed = self.needed_bytes(tokens, self.layers)
        raise pass_too_large(
            f"would take {needed / 1e9:.1f} GB, and {self.limit_bytes / 1e9:.1f} GB are free for it",
            tokens,
        )


def saved_bytes(compute: Callable[[], object], *, but: Iterable[Tensor]) -> int:
    """Return how many bytes a computation keeps for its backward pass.

    Args:
        compute: Does the forward pass and returns something that holds its graph.
        but: Tensors that lie in memory anyway, such as weights.
    """
    anyway = {tensor.untyped_storage().data_ptr() for tensor in but}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in anyway:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        graph = compute()  # held until the sum is taken: what is freed may be handed out again
    total = sum(kept.values())
    del graph
    return total
