"""A sampling client: one state of a policy's weights, asked for replies and logprobs."""

from typing import Any

import torch
from torch import Tensor

from trainer.engine.futures import APIFuture
from trainer.engine.policy import Policy, Question
from trainer.engine.types import ModelInput, SampleResponse, SamplingParams


class SamplingClient:
    """Samples from a policy as it was when the client was made, whatever it learns later.

    The base model is shared with the training client, so both must be used from one thread.
    """

    def __init__(self, policy: Policy, tensors: dict[str, Tensor]) -> None:
        """Sample from `policy` with these adapter weights."""
        self._policy = policy
        self._tensors = tensors

    def sample(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
    ) -> APIFuture[SampleResponse]:
        """Sample continuations of a prompt."""

        def compute() -> SampleResponse:
            with self._policy.with_tensors(self._tensors):
                sequences = self._policy.generate(
                    prompt.tokens, sampling_params, num_samples=num_samples
                )
                scores = self._prompt_logprobs(prompt) if include_prompt_logprobs else None
            return SampleResponse(sequences=tuple(sequences), prompt_logprobs=scores)

        return APIFuture.run(compute)

    def compute_logprobs(self, prompt: ModelInput) -> APIFuture[list[float | None]]:
        """Return the log-probability of each prompt token in nats; the first is None."""

        def compute() -> list[float | None]:
            with self._policy.with_tensors(self._tensors):
                return list(self._prompt_logprobs(prompt))

        return APIFuture.run(compute)

    async def sample_async(self, *args: Any, **kwargs: Any) -> SampleResponse:
        """Like `sample`, without the future: in the remote API this twin gives the response."""
        return self.sample(*args, **kwargs).result()

    async def compute_logprobs_async(self, prompt: ModelInput) -> list[float | None]:
        """Like `compute_logprobs`, without the future."""
        return self.compute_logprobs(prompt).result()

    @torch.no_grad()
    def _prompt_logprobs(self, prompt: ModelInput) -> tuple[float | None, ...]:
        if prompt.length < 2:
            return (None,) * prompt.length
        question = Question(
            tokens=prompt.tokens[:-1],
            targets_T=torch.tensor(prompt.tokens[1:]),
            is_wanted_T=torch.ones(prompt.length - 1, dtype=torch.bool),
        )
        return (None, *self._policy.logprobs([question])[0].tolist())
