"""One state of the weights at an endpoint, asked for replies."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from trainer.engine.types import ModelInput, SampleResponse, SamplingParams
from trainer.remote import wire
from trainer.remote.session import Session

T = TypeVar("T")


class Answered(Generic[T]):
    """A call that is made when its result is asked for, as the loop does at once."""

    def __init__(self, call: Callable[[], T]) -> None:
        """Stand for a call."""
        self._call = call

    def result(self, timeout: float | None = None) -> T:
        """Make the call and return what it gives; its waits have their own bounds."""
        return self._call()


class RemoteSampler:
    """One state of the weights at an endpoint, asked for replies."""

    def __init__(self, session: Session, sampler: Any) -> None:
        """Ask a sampling client of the SDK."""
        self._session = session
        self._sampler = sampler

    def sample(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
    ) -> Answered[SampleResponse]:
        """Sample continuations of a prompt."""
        future = self._sampler.sample(
            wire.prompt(prompt),
            num_samples,
            wire.sampling(sampling_params),
            include_prompt_logprobs,
        )
        return Answered(lambda: wire.sampled(self._session.wait("sampling", future)))

    def compute_logprobs(self, prompt: ModelInput) -> Answered[list[float | None]]:
        """Return the log-probability of each prompt token in nats; the first is None."""
        future = self._sampler.compute_logprobs(wire.prompt(prompt))
        return Answered(lambda: list(self._session.wait("scoring a prompt", future)))
