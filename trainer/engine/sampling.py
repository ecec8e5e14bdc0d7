"""A sampling client: one state of a policy's weights, asked for replies and logprobs."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from trainer.engine.futures import APIFuture, Line
from trainer.engine.policy import Policy, Question
from trainer.engine.types import ModelInput, SampleResponse, SamplingParams
from trainer.errors import BadDataError, ConfigError, shortened

SEEDS = 2**63


class SamplingClient:
    """Samples from a policy as it was when the client was made, whatever it learns later.

    The base model is shared with the training client; the calls of both wait for each other.
    """

    def __init__(
        self, policy: Policy, tensors: dict[str, Tensor], base_model: str, line: Line
    ) -> None:
        """Sample from `policy` with these adapter weights.

        Args:
            policy: The base model with an adapter.
            tensors: Weights of an adapter of that shape.
            base_model: The base model's name.
            line: Where calls on the policy wait for each other.
        """
        self._policy = policy
        self._tensors = tensors
        self._base_model = base_model
        self._line = line

    def get_tokenizer(self) -> PreTrainedTokenizerBase:
        """Return the base model's tokenizer."""
        return self._policy.tokenizer

    def get_base_model(self) -> str:
        """Return the base model's name."""
        return self._base_model

    async def get_base_model_async(self) -> str:
        """Like `get_base_model`."""
        return self._base_model

    def sample(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
    ) -> APIFuture[SampleResponse]:
        """Sample continuations of a prompt, which is computed once for all of them.

        Raises (at `.result()`):
            BadDataError: if the prompt has no token, an unknown one, or leaves no room.
            ConfigError: if the sampling parameters or the number of samples make no sense.
        """
        return self._line.now(
            lambda: self._sample(prompt, num_samples, sampling_params, include_prompt_logprobs)
        )

    async def sample_async(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
    ) -> SampleResponse:
        """Like `sample`, without the future: in the remote API this twin gives the response."""
        return await self._line.soon(
            lambda: self._sample(prompt, num_samples, sampling_params, include_prompt_logprobs)
        )

    def compute_logprobs(self, prompt: ModelInput) -> APIFuture[list[float | None]]:
        """Return the log-probability of each prompt token in nats; the first is None.

        Raises (at `.result()`):
            BadDataError: if the prompt has no token, an unknown one, or more than the model sees.
        """
        return self._line.now(lambda: self._logprobs(prompt))

    async def compute_logprobs_async(self, prompt: ModelInput) -> list[float | None]:
        """Like `compute_logprobs`, without the future."""
        return await self._line.soon(lambda: self._logprobs(prompt))

    def _sample(
        self, prompt: ModelInput, count: int, params: SamplingParams, with_logprobs: bool
    ) -> SampleResponse:
        self._check(prompt)
        check_sampling(params, count)
        with self._policy.with_tensors(self._tensors):
            sequences = self._policy.generate(prompt.tokens, params, num_samples=count)
            scores = self._prompt_logprobs(prompt) if with_logprobs else None
        return SampleResponse(sequences=sequences, prompt_logprobs=scores)

    def _logprobs(self, prompt: ModelInput) -> list[float | None]:
        self._check(prompt)
        with self._policy.with_tensors(self._tensors):
            return self._prompt_logprobs(prompt)

    def _check(self, prompt: ModelInput) -> None:
        if not isinstance(prompt, ModelInput):
            raise BadDataError(
                f"it is a {type(prompt).__name__}",
                where="prompt",
                remedy="Build it with `ModelInput.from_ints(tokens)`.",
            )
        self._policy.check_prompt(prompt.tokens)

    @torch.no_grad()
    def _prompt_logprobs(self, prompt: ModelInput) -> list[float | None]:
        if prompt.length < 2:
            return [None]
        question = Question(
            tokens=prompt.tokens[:-1],
            targets_T=torch.tensor(prompt.tokens[1:]),
            is_wanted_T=torch.ones(prompt.length - 1, dtype=torch.bool),
        )
        return [None, *self._policy.logprobs([question])[0].tolist()]


def check_sampling(params: SamplingParams, num_samples: int) -> None:
    """Check how replies are to be sampled.

    Raises:
        ConfigError: naming the first setting that makes no sense, with what it may be.
    """
    if not isinstance(params, SamplingParams):
        raise ConfigError(
            f"it is a {type(params).__name__}",
            where="sampling_params",
            remedy="Build it with `SamplingParams(max_tokens=...)`.",
        )
    allowed = {
        "num_samples": (num_samples, _is_whole(num_samples, 1), "a whole number, 1 or more"),
        "max_tokens": (
            params.max_tokens,
            params.max_tokens is None or _is_whole(params.max_tokens, 1),
            "a whole number, 1 or more, or None",
        ),
        "seed": (
            params.seed,
            params.seed is None or (_is_whole(params.seed, -SEEDS) and params.seed < SEEDS),
            "a whole number of 64 bits, or None",
        ),
        "temperature": (params.temperature, _is_real(params.temperature), "0 or more"),
        "top_k": (params.top_k, _is_whole(params.top_k, -1), "a whole number, or -1 for all"),
        "top_p": (
            params.top_p,
            _is_real(params.top_p) and 0 < params.top_p <= 1,
            "above 0, and at most 1",
        ),
        "stop": (params.stop, _is_stop(params.stop), "strings that are not empty, or token ids"),
    }
    for name, (value, is_good, wanted) in allowed.items():
        if not is_good:
            raise ConfigError(
                f"{name} is {shortened(repr(value))}",
                where="sampling_params" if name != "num_samples" else name,
                remedy=f"Give {wanted}.",
            )


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _is_stop(stop: Any) -> bool:
    if stop is None or isinstance(stop, str):
        return stop != ""
    return isinstance(stop, Sequence) and all(
        one != "" if isinstance(one, str) else _is_whole(one, 0) for one in stop
    )
