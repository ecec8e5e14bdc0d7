"""A sampling client: one state of a policy's weights, asked for replies and logprobs."""

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from trainer.engine.futures import APIFuture, Line
from trainer.engine.policy import Policy, Question
from trainer.engine.types import ModelInput, SampleResponse, SamplingParams


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
            BadDataError: if the prompt has no token, or an unknown one.
        """
        return self._line.now(lambda: self._logprobs(prompt))

    async def compute_logprobs_async(self, prompt: ModelInput) -> list[float | None]:
        """Like `compute_logprobs`, without the future."""
        return await self._line.soon(lambda: self._logprobs(prompt))

    def _sample(
        self, prompt: ModelInput, count: int, params: SamplingParams, with_logprobs: bool
    ) -> SampleResponse:
        self._policy.check_prompt(prompt.tokens)
        with self._policy.with_tensors(self._tensors):
            sequences = self._policy.generate(prompt.tokens, params, num_samples=count)
            scores = self._prompt_logprobs(prompt) if with_logprobs else None
        return SampleResponse(sequences=sequences, prompt_logprobs=scores)

    def _logprobs(self, prompt: ModelInput) -> list[float | None]:
        self._policy.check_prompt(prompt.tokens)
        with self._policy.with_tensors(self._tensors):
            return self._prompt_logprobs(prompt)

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
