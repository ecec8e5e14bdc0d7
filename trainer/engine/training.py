"""One adapter in training: passes, optimiser steps, saved states."""

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from db.settings import Settings
from trainer.engine.folders import new_folder, saved_folder
from trainer.engine.futures import APIFuture
from trainer.engine.gradients import BatchRunner
from trainer.engine.losses import LossConfig, loss_function
from trainer.engine.memory import peak_memory_bytes
from trainer.engine.metrics import figure_sums, pass_metrics
from trainer.engine.optimizer import Optimizer
from trainer.engine.parallel import ParallelRunner, sum_gradients
from trainer.engine.policy import Policy
from trainer.engine.ranks import ALONE, Ranks
from trainer.engine.sampling import SamplingClient
from trainer.engine.state import read_state, write_state
from trainer.engine.types import (
    AdamParams,
    Datum,
    ForwardBackwardOutput,
    LoadResponse,
    OptimStepOutput,
    SaveResponse,
    TensorData,
)

LossSettings = LossConfig | Mapping[str, float] | None


class TrainingClient:
    """Trains one adapter: passes accumulate gradients, `optim_step` uses them.

    Attributes:
        base_model: The name it was created with.
        device: Where it computes.
        path_reason: In words, whether shared prefixes are computed once, and why.
        ranks: The processes that train together. Passes and optimiser steps are theirs in common;
            what writes or samples is for the leader alone (`ranks.lead`).
    """

    def __init__(
        self,
        policy: Policy,
        base_model: str,
        settings: Settings,
        *,
        token_budget: int,
        ranks: Ranks = ALONE,
    ) -> None:
        """Train the policy's adapter, on all ranks from the leader's initial weights."""
        self.base_model = base_model
        self.device = policy.device
        self.path_reason = policy.path_reason
        self.ranks = ranks
        self._policy = policy
        self._settings = settings
        self._runner = ParallelRunner(policy, BatchRunner(policy, token_budget), ranks)
        self._optimizer = Optimizer(policy.trainable())
        if ranks.count > 1:
            self._copy_leaders_weights()

    @property
    def computed_tokens(self) -> int:
        """Tokens sent through the model so far, shared prefixes counted once a pass."""
        return self._runner.computed_tokens

    def peak_memory_bytes(self) -> int:
        """Return the most memory used so far by one process, or on one CUDA device."""
        return max(peak_memory_bytes(self.device), self._runner.peak_memory_bytes)

    def get_tokenizer(self) -> PreTrainedTokenizerBase:
        """Return the base model's tokenizer."""
        return self._policy.tokenizer

    def forward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: LossSettings = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Return logprobs and loss of a batch; no gradient is computed."""
        return APIFuture.run(lambda: self._run(data, loss_fn, loss_fn_config, backward=False))

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: LossSettings = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Return logprobs and loss of a batch and add its gradient to what is accumulated.

        The gradient is that of the sum of token loss × weight. A batch that fails adds nothing.

        Args:
            data: The datums; neighbours that share prefixes are computed together.
            loss_fn: "ppo", "importance_sampling" or "cross_entropy".
            loss_fn_config: See `LossConfig.parse`.

        Raises (at `.result()`):
            BadDataError, ConfigError, NotFiniteError, OutOfMemoryError.
        """
        return APIFuture.run(lambda: self._run(data, loss_fn, loss_fn_config, backward=True))

    def optim_step(self, adam_params: AdamParams) -> APIFuture[OptimStepOutput]:
        """Take an optimiser step along the accumulated gradient, then forget the gradient.

        Raises (at `.result()`):
            NotFiniteError: if gradient or weights are NaN or Inf.
        """

        def compute() -> OptimStepOutput:
            sum_gradients(self._policy.trainable().values(), self.ranks)
            return OptimStepOutput(metrics={"grad_norm:last": self._optimizer.step(adam_params)})

        return APIFuture.run(compute)

    def save_state(self, name: str) -> APIFuture[SaveResponse]:
        """Write adapter, optimiser and random state.

        Args:
            name: A path, or a bare name for a folder under EVERYTURN_HOME.

        Raises (at `.result()`):
            NotFiniteError: if the adapter computes NaN or Inf; nothing is written.
        """

        def compute() -> SaveResponse:
            folder = saved_folder(self._settings, name)
            self._policy.check_finite()
            with new_folder(folder) as unfinished:
                write_state(unfinished, self._policy, self._optimizer, self._facts())
            return SaveResponse(path=str(folder))

        return APIFuture.run(compute)

    def load_state(self, path: str) -> APIFuture[LoadResponse]:
        """Load the adapter of a saved state; the optimiser starts afresh."""

        def compute() -> LoadResponse:
            folder = saved_folder(self._settings, path)
            read_state(folder, self._policy, None, self._facts())
            self._optimizer = Optimizer(self._policy.trainable())
            return LoadResponse(path=str(folder))

        return APIFuture.run(compute)

    def load_state_with_optimizer(self, path: str) -> APIFuture[LoadResponse]:
        """Load a saved state whole; on a CPU training goes on bit by bit as it would have."""

        def compute() -> LoadResponse:
            folder = saved_folder(self._settings, path)
            read_state(folder, self._policy, self._optimizer, self._facts())
            return LoadResponse(path=str(folder))

        return APIFuture.run(compute)

    def save_weights_for_sampler(self, name: str) -> APIFuture[SaveResponse]:
        """Write the adapter as a PEFT folder that has been loaded again and compared.

        Args:
            name: A path, or a bare name for a folder under EVERYTURN_HOME.

        Raises (at `.result()`):
            NotFiniteError: if a weight is NaN or Inf; nothing is written.
            CheckpointError: if the folder does not give the trained policy back.
        """

        def compute() -> SaveResponse:
            folder = saved_folder(self._settings, name)
            self._policy.check_finite()
            with new_folder(folder) as unfinished:
                self._policy.write(unfinished)
                self._policy.check_saved(unfinished)
            return SaveResponse(path=str(folder))

        return APIFuture.run(compute)

    def save_weights_and_get_sampling_client(self, name: str | None = None) -> SamplingClient:
        """Return a client that samples from the weights as they are now.

        Args:
            name: Where to write them too; None keeps them in memory.
        """
        if name is not None:
            self.save_weights_for_sampler(name).result()
        return SamplingClient(self._policy, self._policy.tensors())

    async def forward_async(self, *args: Any, **kwargs: Any) -> APIFuture[ForwardBackwardOutput]:
        """Like `forward`."""
        return self.forward(*args, **kwargs)

    async def forward_backward_async(
        self, *args: Any, **kwargs: Any
    ) -> APIFuture[ForwardBackwardOutput]:
        """Like `forward_backward`."""
        return self.forward_backward(*args, **kwargs)

    async def optim_step_async(self, adam_params: AdamParams) -> APIFuture[OptimStepOutput]:
        """Like `optim_step`."""
        return self.optim_step(adam_params)

    async def save_state_async(self, name: str) -> APIFuture[SaveResponse]:
        """Like `save_state`."""
        return self.save_state(name)

    async def load_state_async(self, path: str) -> APIFuture[LoadResponse]:
        """Like `load_state`."""
        return self.load_state(path)

    async def load_state_with_optimizer_async(self, path: str) -> APIFuture[LoadResponse]:
        """Like `load_state_with_optimizer`."""
        return self.load_state_with_optimizer(path)

    async def save_weights_for_sampler_async(self, name: str) -> APIFuture[SaveResponse]:
        """Like `save_weights_for_sampler`."""
        return self.save_weights_for_sampler(name)

    async def save_weights_and_get_sampling_client_async(
        self, name: str | None = None
    ) -> SamplingClient:
        """Like `save_weights_and_get_sampling_client`."""
        return self.save_weights_and_get_sampling_client(name)

    def _run(
        self, data: Sequence[Datum], loss_fn: str, settings: LossSettings, *, backward: bool
    ) -> ForwardBackwardOutput:
        config = LossConfig.parse(settings)
        result = self._runner.run(data, loss_function(loss_fn), config, backward=backward)
        outputs = [{"logprobs": TensorData.from_torch(logprobs)} for logprobs in result.logprobs]
        sums = [
            figure_sums(loss_fn, datum, output["logprobs"], config)
            for datum, output in zip(data, outputs, strict=True)
        ]
        self._optimizer.add_gradients(result.gradients)
        return ForwardBackwardOutput(
            loss_fn_output_type="logprobs",
            loss_fn_outputs=outputs,
            metrics=pass_metrics(loss_fn, sums),
        )

    def _copy_leaders_weights(self) -> None:
        """Make every rank begin with the same adapter, also where no seed was given."""
        tensors = self._policy.tensors()
        for tensor in tensors.values():
            if not self.ranks.is_leader:
                tensor.zero_()
            self.ranks.sum(tensor)
        self._policy.set_tensors(tensors, origin="leader")

    def _facts(self) -> dict[str, Any]:
        """Return what a saved state must have in common with this client."""
        return self._policy.shape.to_json()
