"""What a run asks of whatever computes it: the one interface between the loop and an engine.

`trainer.engine.client.TrainingClient` computes in this process, `trainer.remote.client.RemoteClient`
has another machine compute. The loop knows neither.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from transformers import PreTrainedTokenizerBase

from trainer.engine.ranks import Ranks
from trainer.engine.types import (
    AdamParams,
    Datum,
    ForwardBackwardOutput,
    ModelInput,
    OptimStepResponse,
    SampleResponse,
    SamplingParams,
)

T_co = TypeVar("T_co", covariant=True)


class Pending(Protocol[T_co]):
    """What a call will give."""

    def result(self, timeout: float | None = None) -> T_co:
        """Wait for the value, or raise what went wrong."""
        ...


class Sampler(Protocol):
    """One state of the weights, asked for replies."""

    def sample(
        self,
        prompt: ModelInput,
        num_samples: int,
        sampling_params: SamplingParams,
        include_prompt_logprobs: bool = False,
    ) -> Pending[SampleResponse]:
        """Sample continuations of a prompt."""
        ...

    def compute_logprobs(self, prompt: ModelInput) -> Pending[list[float | None]]:
        """Return the log-probability of each prompt token in nats; the first is None."""
        ...


class Engine(Protocol):
    """Trains one adapter; `trainer.engine.training_client` says what each call means."""

    @property
    def ranks(self) -> Ranks:
        """The processes that train together."""
        ...

    @property
    def computed_tokens(self) -> int:
        """Tokens sent through the model so far; those sent to an endpoint, where there is one."""
        ...

    def peak_memory_bytes(self) -> int:
        """Return the most memory used so far on this machine."""
        ...

    def get_tokenizer(self) -> PreTrainedTokenizerBase:
        """Return the base model's tokenizer."""
        ...

    def forward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: Any = None
    ) -> Pending[ForwardBackwardOutput]:
        """Return the log-probabilities of a batch."""
        ...

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: Any = None
    ) -> Pending[ForwardBackwardOutput]:
        """Return them, and add the gradient of a batch to what is accumulated."""
        ...

    def optim_step(self, adam_params: AdamParams) -> Pending[OptimStepResponse]:
        """Take an optimiser step along the accumulated gradient."""
        ...

    def save_state(self, name: str) -> Pending[Any]:
        """Write what training needs to go on into a folder of this machine."""
        ...

    def load_state(self, path: str) -> Pending[Any]:
        """Load the adapter of a saved state; the optimiser starts afresh."""
        ...

    def load_state_with_optimizer(self, path: str) -> Pending[Any]:
        """Load a saved state whole."""
        ...

    def save_weights_for_sampler(self, name: str) -> Pending[Any]:
        """Write the adapter into a folder of this machine as PEFT reads it."""
        ...

    def save_weights_and_get_sampling_client(self) -> Sampler:
        """Return a sampler of the weights as they are now."""
        ...

    def without_adapter(self) -> AbstractContextManager[None]:
        """Let the passes inside the block see the base model alone."""
        ...
