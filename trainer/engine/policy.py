"""The policy that is trained: a base model with a LoRA adapter, asked for logprobs of tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from db.settings import Settings
from trainer.engine.activations import ActivationMemory
from trainer.engine.adapter import (
    ADAPTER,
    AdapterShape,
    adapter_tensors,
    attach_adapter,
    set_adapter_tensors,
    write_adapter_folder,
)
from trainer.engine.forward import TreeForward
from trainer.engine.generation import end_tokens, generate, most_tokens
from trainer.engine.prefix_tree import PrefixTree, build_prefix_tree, pack
from trainer.engine.sharing import agrees, plain_logprobs, probe_sequences
from trainer.engine.types import SampledSequence, SamplingParams
from trainer.errors import BadDataError, CheckpointError, NotFiniteError
from trainer.models import load_base_model, load_tokenizer


@dataclass(frozen=True, slots=True)
class Question:
    """A token sequence, and which of its predictions are wanted.

    Attributes:
        tokens: The model input, length T.
        targets_T: int64 on the CPU, the token to score after each position.
        is_wanted_T: bool on the CPU, True where the score is wanted.
    """

    tokens: Sequence[int]
    targets_T: Tensor
    is_wanted_T: Tensor


class Policy:
    """A base model with a LoRA adapter on its blocks, in evaluation mode.

    Attributes:
        tokenizer: The model's tokenizer.
        shape: What the adapter looks like.
        device: Where the model lies.
        vocabulary: How many token ids the model knows, from 0.
        context_tokens: Most tokens it sees at once; None if it does not say.
        shares_prefixes: Whether a pass computes shared prefixes once.
        path_reason: In words, why it does or does not.
        computed_tokens: Tokens sent through the model so far.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        shape: AdapterShape,
        *,
        seed: int | None = None,
        memory_limit_bytes: float | None = None,
    ) -> None:
        """Attach a fresh adapter to a loaded base model and find out how to run it.

        Args:
            model: The base model.
            tokenizer: Its tokenizer.
            shape: What the adapter looks like.
            seed: Fixes the adapter's initial weights.
            memory_limit_bytes: What a pass may take; None for most of what is free now.
        """
        self.tokenizer = tokenizer
        self.shape = shape
        self.device = model.device
        self.computed_tokens = 0
        self._model = model
        self._adapted = attach_adapter(model, shape, seed=seed)
        # Sampling shall depend on its own parameters alone, not on what a model would like.
        self._stop_ids = end_tokens(model, tokenizer)
        model.generation_config = GenerationConfig()
        self.vocabulary = cast(nn.Embedding, model.get_input_embeddings()).num_embeddings
        self.context_tokens = most_tokens(model.config)
        self._forward = TreeForward(
            model, list(self.trainable().values()), memory_limit_bytes=memory_limit_bytes
        )
        self.shares_prefixes = self._forward.shares_prefixes
        self.path_reason = self._forward.reason

    @classmethod
    def load(
        cls,
        settings: Settings,
        name: str,
        *,
        device: torch.device,
        shape: AdapterShape,
        seed: int | None = None,
    ) -> Self:
        """Load a base model by name and attach a fresh adapter.

        Raises:
            ModelError: if the model cannot be had or loaded.
            ConfigError: if no layer is left to adapt.
        """
        model = load_base_model(settings, name, device=device)
        return cls(model, load_tokenizer(settings, name), shape, seed=seed)

    @property
    def architecture(self) -> str:
        """The class of the base model, as other tools know it."""
        return type(self._model).__name__

    def use_device(self) -> None:
        """Make the model's device that of the calling thread."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)

    @property
    def activations(self) -> ActivationMemory:
        """What a pass takes in memory."""
        return self._forward.activations

    @property
    def model(self) -> PreTrainedModel:
        """The base model with the adapter's layers inside."""
        return self._model

    @property
    def adapted(self) -> PeftModel:
        """The same model as peft sees it."""
        return self._adapted

    def trainable(self) -> dict[str, nn.Parameter]:
        """Return the adapter's parameters by name, in a fixed order."""
        return {n: p for n, p in self._adapted.named_parameters() if p.requires_grad}

    def packs(
        self, sequences: Sequence[Sequence[int]], token_budget: int, goes_on: Sequence[bool]
    ) -> list[range]:
        """Split sequences, in order, into the passes that this model can run; see `pack`."""
        if self.shares_prefixes:
            return pack(sequences, token_budget, goes_on)
        return [range(index, index + 1) for index in range(len(sequences))]

    def logprobs(self, questions: Sequence[Question]) -> list[Tensor]:
        """Return the logprobs of the wanted tokens from one pass over all questions.

        Returns:
            For each question an fp32 tensor of shape (T,) on the model's device, 0 where nothing
            is wanted; carries gradient to the adapter where gradients are enabled.

        Raises:
            BadDataError: if a token id is not in the model's vocabulary.
        """
        for question in questions:
            self._check_vocabulary(question)
        tree = build_prefix_tree([question.tokens for question in questions])
        predictions = _Predictions.collect(tree, questions, self.vocabulary)
        if not len(predictions.nodes_P):
            return [torch.zeros(len(q.tokens), device=self.device) for q in questions]
        self.computed_tokens += len(tree)
        scores_P = self._forward.logprobs(
            tree, predictions.nodes_P.to(self.device), predictions.targets_P.to(self.device)
        )
        wanted = scores_P[predictions.place_W.to(self.device)]
        answers: list[Tensor] = []
        for question, scores in zip(questions, wanted.split(predictions.counts), strict=True):
            blank_T = torch.zeros(len(question.tokens), device=self.device)
            answers.append(blank_T.masked_scatter(question.is_wanted_T.to(self.device), scores))
        return answers

    def generate(
        self, prompt: Sequence[int], params: SamplingParams, *, num_samples: int = 1
    ) -> list[SampledSequence]:
        """Sample continuations, with the logprobs that the untempered policy gives them."""
        return generate(
            self._model,
            self.tokenizer,
            prompt,
            params,
            num_samples=num_samples,
            stop_ids=self._stop_ids,
            context_tokens=self.context_tokens,
        )

    @contextmanager
    def without_adapter(self) -> Iterator[None]:
        """Let the block see the base model alone."""
        with self._adapted.disable_adapter():
            yield

    @contextmanager
    def with_tensors(self, tensors: dict[str, Tensor]) -> Iterator[None]:
        """Let the block see the model with other adapter weights."""
        present = self.tensors()
        self.set_tensors(tensors)
        try:
            yield
        finally:
            self.set_tensors(present)

    def tensors(self) -> dict[str, Tensor]:
        """Return a copy of the adapter's weights under the keys that its file has."""
        return {key: value.clone() for key, value in adapter_tensors(self._adapted).items()}

    def set_tensors(self, tensors: dict[str, Tensor], *, origin: str = "adapter") -> None:
        """Overwrite the adapter's weights.

        Raises:
            CheckpointError: if they are not of this adapter's shape.
        """
        set_adapter_tensors(self._adapted, tensors, origin=origin)

    def write(self, folder: Path) -> None:
        """Write the adapter as a PEFT folder.

        Raises:
            CheckpointError: if the file does not read back unchanged.
        """
        write_adapter_folder(self._adapted, folder)

    def check_finite(self) -> None:
        """Raise NotFiniteError if the adapter's weights or what they compute are NaN or Inf."""
        answers = plain_logprobs(self._model, probe_sequences(self.vocabulary)[:1])
        if all(bool(values.isfinite().all()) for values in [*self.trainable().values(), *answers]):
            return
        raise NotFiniteError(
            "the adapter computes NaN or Inf",
            where="adapter",
            remedy="Don't use it; lower the learning rate and train again.",
        )

    def check_saved(self, folder: Path) -> None:
        """Load a PEFT folder as anybody would, and compare its answers with the adapter's.

        Raises:
            CheckpointError: if the two disagree.
        """
        probe = probe_sequences(self.vocabulary)[1:2]
        expected = plain_logprobs(self._model, probe)
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            self._adapted.load_adapter(str(folder), adapter_name="saved")
        try:
            self._adapted.set_adapter("saved")
            same = agrees(self._model, expected, lambda: plain_logprobs(self._model, probe))
        finally:
            self._adapted.set_adapter(ADAPTER)
            self._adapted.delete_adapter("saved")
        if not same:
            raise CheckpointError(
                "the saved adapter, loaded with PEFT, answers differently from the trained one",
                where=str(folder),
                remedy="Don't use it; save again, and report this if it happens twice.",
            )

    def check_prompt(self, prompt: Sequence[int]) -> None:
        """Raise BadDataError if a prompt is empty, too long, or holds ids nobody knows."""
        if self.context_tokens is not None and len(prompt) > self.context_tokens:
            raise BadDataError(
                f"it has {len(prompt)} tokens, and the model sees {self.context_tokens}",
                where="prompt",
                remedy="Shorten it from the front.",
            )
        if prompt and min(prompt) >= 0 and max(prompt) < self.vocabulary:
            return
        raise BadDataError(
            "it holds ids outside the model's vocabulary" if prompt else "it holds no token",
            where="prompt",
            remedy="Encode it with this model's own tokenizer (`get_tokenizer`).",
        )

    def _check_vocabulary(self, question: Question) -> None:
        highest = max(max(question.tokens), int(question.targets_T.max()))
        if highest >= self.vocabulary or min(question.tokens) < 0:
            raise BadDataError(
                f"token id {highest} is outside the model's vocabulary of {self.vocabulary}",
                where="tokens of a turn",
                remedy="Use replies sampled by this model, or clear their stored token ids.",
            )


@dataclass(frozen=True, slots=True)
class _Predictions:
    """The distinct (node, target) pairs of a pass, and where each question finds its own.

    Attributes:
        nodes_P: int64, the node from which each distinct prediction is made.
        targets_P: int64, the token it scores.
        place_W: int64, for each wanted position of each question in turn, its pair.
        counts: How many positions each question wants.
    """

    nodes_P: Tensor
    targets_P: Tensor
    place_W: Tensor
    counts: list[int]

    @classmethod
    def collect(cls, tree: PrefixTree, questions: Sequence[Question], vocabulary: int) -> Self:
        keys = [
            torch.tensor(path)[question.is_wanted_T] * vocabulary
            + question.targets_T[question.is_wanted_T]
            for path, question in zip(tree.nodes, questions, strict=True)
        ]
        distinct, place = torch.unique(torch.cat(keys), return_inverse=True)
        return cls(distinct // vocabulary, distinct % vocabulary, place, [len(k) for k in keys])
