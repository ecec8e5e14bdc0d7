"""Hidden states and logprobs over a prefix tree, by the fastest way that a trial has confirmed."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from trainer.engine import llama
from trainer.engine.activations import ActivationMemory, Saving, saved_bytes
from trainer.engine.attention import NAME, attention_blocks
from trainer.engine.head import CHUNK_POSITIONS, LEAST_ROWS, Head, chosen_logprobs, is_plain_head
from trainer.engine.memory import memory_limit_bytes
from trainer.engine.prefix_tree import PrefixTree, build_prefix_tree
from trainer.engine.sharing import agrees, plain_logprobs, probe_sequences, sharing_obstacle

PASSED_ON = (1, 1, 1, 1)
"""A mask of four dimensions is passed on by transformers as it is, so that it builds none itself."""


class Way(Enum):
    """How the hidden states of a tree are computed; the value says so in words."""

    PER_TURN = "one pass for each turn"
    SHARED = "shared prefixes computed once"
    LLAMA = "shared prefixes computed once, by a pass written for models of this family"


class TreeForward:
    """Runs a model over prefix trees.

    Attributes:
        way: How.
        reason: In words, how and why.
        activations: What a pass keeps in memory.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        trainable: Sequence[nn.Parameter],
        *,
        memory_limit_bytes: float | None = None,
    ) -> None:
        """Find out how to run a model.

        Args:
            model: The base model with adapted layers inside.
            trainable: The adapter's parameters, for the trials.
            memory_limit_bytes: What a pass may take; None for most of what is free now.
        """
        self._model = model
        self._layers = _checkpointed_layers(model)
        self._vocabulary = cast(nn.Embedding, model.get_input_embeddings()).num_embeddings
        self._choose(trainable)
        self.activations = self._measure(memory_limit_bytes)

    @property
    def shares_prefixes(self) -> bool:
        """Whether a tree may branch."""
        return self.way is not Way.PER_TURN

    def logprobs(self, tree: PrefixTree, nodes_P: Tensor, targets_P: Tensor) -> Tensor:
        """Return the log-probability of each target after its node, fp32, shape (P,).

        Args:
            tree: The tokens; a single chain unless `shares_prefixes`.
            nodes_P: int64 on the model's device, the node from which each target is predicted.
            targets_P: int64 on the model's device.

        Raises:
            OutOfMemoryError: if the pass would not fit, even with every layer recomputed.
        """
        saving = Saving()
        if torch.is_grad_enabled():
            saving = self.activations.saving(len(tree))
        return self._logprobs(tree, nodes_P, targets_P, saving)

    def _logprobs(
        self, tree: PrefixTree, nodes_P: Tensor, targets_P: Tensor, saving: Saving
    ) -> Tensor:
        if self._head is None:
            # A head that scales or caps its logits only does so inside the model's own forward.
            asked = len(nodes_P)
            kept_P = torch.cat([nodes_P, nodes_P[-1:].expand(max(0, LEAST_ROWS - asked))])
            with _Recomputing(self._layers, saving.recomputed_layers):
                output = self._model(**self._inputs(tree), logits_to_keep=kept_P)
            return chosen_logprobs(output.logits[0, :asked], targets_P)
        rows_R, place_P = torch.unique(nodes_P, return_inverse=True)
        hidden_RH = self._hidden(tree, rows_R, saving)
        return self._head.logprobs(hidden_RH[place_P], targets_P)

    def _hidden(self, tree: PrefixTree, rows_R: Tensor, saving: Saving) -> Tensor:
        inputs = self._inputs(tree)
        if self.way is Way.LLAMA:
            return llama.hidden_states(
                self._model,
                inputs["input_ids"],
                inputs["position_ids"],
                inputs["blocks"],
                rows_R,
                saving,
            )
        with _Recomputing(self._layers, saving.recomputed_layers):
            return self._model.base_model(**inputs).last_hidden_state[0, rows_R]

    def _inputs(self, tree: PrefixTree) -> dict[str, Any]:
        device = self._model.device
        inputs: dict[str, Any] = {"input_ids": torch.tensor([tree.tokens], device=device)}
        if self.way is Way.LLAMA or not tree.is_chain:
            inputs["position_ids"] = torch.tensor([tree.depth], device=device)
            inputs["blocks"] = attention_blocks(tree, dtype=self._model.dtype, device=device)
        if self.way is not Way.LLAMA:  # a chain is plain causal attention, which needs no more
            inputs["use_cache"] = False
            if not tree.is_chain:
                inputs["attention_mask"] = torch.ones(PASSED_ON, dtype=torch.bool, device=device)
        return inputs

    def _choose(self, trainable: Sequence[nn.Parameter]) -> None:
        """Decide, by config and by trying."""
        sequences = probe_sequences(self._vocabulary)
        expected = plain_logprobs(self._model, sequences)
        self.way = Way.PER_TURN
        head = self._model.get_output_embeddings()
        is_apart = self._model.base_model is not self._model
        self._head = Head(head) if is_apart and is_plain_head(head) else None
        if self._head is not None and not self._agrees(expected[:1], sequences[:1]):
            self._head = None

        obstacle = sharing_obstacle(self._model)
        if obstacle is None:
            self._model.set_attn_implementation(NAME)
            self.way = Way.SHARED
            if not self._agrees(expected, sequences):
                obstacle = "a trial gave other logprobs than passes one by one"
        if obstacle is not None:
            self.way = Way.PER_TURN
            self.reason = f"{self.way.value}, because {obstacle}"
            return
        if self._head is not None and llama.is_of_the_family(self._model):
            gradient = self._probe_gradient(sequences, trainable)
            self.way = Way.LLAMA
            agreed = self._agrees(expected, sequences) and torch.allclose(
                self._probe_gradient(sequences, trainable), gradient, rtol=1e-3, atol=1e-4
            )
            self.way = Way.LLAMA if agreed else Way.SHARED
        self.reason = f"{self.way.value}; a trial agreed with passes one by one"

    def _agrees(self, expected: Sequence[Tensor], sequences: Sequence[Sequence[int]]) -> bool:
        return agrees(self._model, expected, lambda: self._probe(sequences))

    def _probe(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the logprobs of the sequences' tokens after the first, from one pass."""
        tree = build_prefix_tree([sequence[:-1] for sequence in sequences])
        device = self._model.device
        nodes_P = torch.tensor([node for path in tree.nodes for node in path], device=device)
        targets = [target for sequence in sequences for target in sequence[1:]]
        targets_P = torch.tensor(targets, device=device)
        logprobs_P = self._logprobs(tree, nodes_P, targets_P, Saving(recipes=True))
        return list(logprobs_P.split([len(path) for path in tree.nodes]))

    def _probe_gradient(
        self, sequences: Sequence[Sequence[int]], trainable: Sequence[nn.Parameter]
    ) -> Tensor:
        total = torch.cat(self._probe(sequences)).mean()
        return torch.cat([part.flatten() for part in torch.autograd.grad(total, trainable)])

    def _measure(self, limit_bytes: float | None) -> ActivationMemory:
        """Find out what each token of a pass keeps for the backward pass."""
        if limit_bytes is None:
            limit_bytes = memory_limit_bytes(self._model.device)
        sequence = probe_sequences(self._vocabulary)[:1]
        kept = saved_bytes(lambda: self._probe(sequence), but=self._model.parameters())
        hidden = self._model.config.get_text_config().hidden_size
        width = torch.finfo(self._model.dtype).bits // 8
        return ActivationMemory(
            layers=len(self._layers),
            kept_bytes=kept // (len(sequence[0]) - 1),
            input_bytes=hidden * width,
            fixed_bytes=2 * CHUNK_POSITIONS * self._vocabulary * 4,
            limit_bytes=limit_bytes,
        )


class _Recomputing:
    """Lets a model's first layers keep only their input for the length of a block.

    transformers recomputes a layer where the layer itself is in training mode. Only that flag is
    set: what lies inside the layer stays in evaluation mode.
    """

    def __init__(self, layers: Sequence[GradientCheckpointingLayer], count: int) -> None:
        self._layers = layers[:count]

    def __enter__(self) -> None:
        for layer in self._layers:
            layer.training = True

    def __exit__(self, *_: object) -> None:
        for layer in self._layers:
            layer.training = False


def _checkpointed_layers(model: PreTrainedModel) -> list[GradientCheckpointingLayer]:
    """Prepare the model's layers for being recomputed, and return them; none if it cannot."""
    if not model.supports_gradient_checkpointing:
        return []
    enable: Callable[..., None] = model.activation_checkpointing_enable
    enable({"use_reentrant": False})  # the first layer's input carries no gradient
    return [layer for layer in model.modules() if isinstance(layer, GradientCheckpointingLayer)]
