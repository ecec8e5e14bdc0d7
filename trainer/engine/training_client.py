"""The training client of the Tinker / MinT API: the calls on one adapter, in the order made."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from transformers import PreTrainedTokenizerBase

from db.settings import Settings
from trainer.engine.custom_loss import CustomLoss
from trainer.engine.folders import Saved, saved_folder
from trainer.engine.futures import APIFuture, Line
from trainer.engine.policy import Policy
from trainer.engine.ranks import ALONE, Ranks
from trainer.engine.sampling import SamplingClient
from trainer.engine.training import LossSettings, Training
from trainer.engine.types import (
    AdamParams,
    Datum,
    ForwardBackwardOutput,
    GetInfoResponse,
    LoadWeightsResponse,
    ModelData,
    OptimStepResponse,
    SaveWeightsForSamplerResponse,
    SaveWeightsResponse,
)


class TrainingClient:
    """Trains one adapter: passes accumulate gradients, `optim_step` uses them.

    Calls are computed in the order in which they are made. A plain call has been computed when it
    returns; its `_async` twin returns the future at once, and the event loop goes on.

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
        self._training = Training(policy, token_budget=token_budget, ranks=ranks)
        self._line = Line(policy.use_device)
        self._id = f"local-{uuid.uuid4().hex[:8]}"

    @property
    def computed_tokens(self) -> int:
        """Tokens sent through the model so far, shared prefixes counted once a pass."""
        return self._training.computed_tokens

    def peak_memory_bytes(self) -> int:
        """Return the most memory used so far by one process, or on one CUDA device."""
        return self._training.peak_memory_bytes()

    def get_tokenizer(self) -> PreTrainedTokenizerBase:
        """Return the base model's tokenizer."""
        return self._policy.tokenizer

    def get_info(self) -> GetInfoResponse:
        """Return what this client trains."""
        return GetInfoResponse(
            model_data=ModelData(
                arch=self._policy.architecture,
                model_name=self.base_model,
                tokenizer_id=self.base_model,
            ),
            model_id=self._id,
            is_lora=True,
            lora_rank=self._policy.shape.rank,
            model_name=self.base_model,
        )

    async def get_info_async(self) -> GetInfoResponse:
        """Like `get_info`."""
        return self.get_info()

    def forward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: LossSettings = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Return logprobs and loss of a batch; no gradient is computed.

        Logprobs are those of the trained tokens, 0 elsewhere; of all tokens in a datum of which
        none is trained.
        """
        data = _batch(data)
        return self._line.now(
            lambda: self._training.run(data, loss_fn, loss_fn_config, backward=False)
        )

    async def forward_async(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: LossSettings = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Like `forward`."""
        data = _batch(data)
        return self._line.soon(
            lambda: self._training.run(data, loss_fn, loss_fn_config, backward=False)
        )

    def forward_backward(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: LossSettings = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Return logprobs and loss of a batch and add its gradient to what is accumulated.

        The gradient is that of the sum of token loss × weight. A batch that fails adds nothing.

        Args:
            data: The datums; neighbours that share prefixes are computed together.
            loss_fn: "ppo", "importance_sampling", "cispo", "dro" or "cross_entropy".
            loss_fn_config: See `LossConfig.parse`.

        Raises (at `.result()`):
            BadDataError, ConfigError, NotFiniteError, OutOfMemoryError.
        """
        data = _batch(data)
        return self._line.now(
            lambda: self._training.run(data, loss_fn, loss_fn_config, backward=True)
        )

    async def forward_backward_async(
        self, data: Sequence[Datum], loss_fn: str, loss_fn_config: LossSettings = None
    ) -> APIFuture[ForwardBackwardOutput]:
        """Like `forward_backward`."""
        data = _batch(data)
        return self._line.soon(
            lambda: self._training.run(data, loss_fn, loss_fn_config, backward=True)
        )

    def forward_backward_custom(
        self, data: Sequence[Datum], loss_fn: CustomLoss, *, loss_type_input: str = "logprobs"
    ) -> APIFuture[ForwardBackwardOutput]:
        """Add the gradient of a loss of one's own, at the cost of one more forward pass.

        Args:
            data: Datums with `target_tokens`; what else they hold is for `loss_fn` alone.
            loss_fn: Takes the datums and, for each, the log-probabilities of its targets as a
                tensor of shape (T,); returns a scalar tensor and metrics by name. It must not
                call this client.
            loss_type_input: Only "logprobs".

        Raises (at `.result()`):
            BadDataError, ConfigError, NotFiniteError, OutOfMemoryError, and what `loss_fn` raises.
        """
        data = _batch(data)
        return self._line.now(lambda: self._training.run_custom(data, loss_fn, loss_type_input))

    async def forward_backward_custom_async(
        self, data: Sequence[Datum], loss_fn: CustomLoss, *, loss_type_input: str = "logprobs"
    ) -> APIFuture[ForwardBackwardOutput]:
        """Like `forward_backward_custom`; `loss_fn` is called by another thread."""
        data = _batch(data)
        return self._line.soon(lambda: self._training.run_custom(data, loss_fn, loss_type_input))

    def optim_step(self, adam_params: AdamParams) -> APIFuture[OptimStepResponse]:
        """Take an optimiser step along the accumulated gradient, then forget the gradient.

        Raises (at `.result()`):
            NotFiniteError: if gradient or weights are NaN or Inf.
        """
        return self._line.now(lambda: self._training.optim_step(adam_params))

    async def optim_step_async(self, adam_params: AdamParams) -> APIFuture[OptimStepResponse]:
        """Like `optim_step`."""
        return self._line.soon(lambda: self._training.optim_step(adam_params))

    def save_state(
        self, name: str, ttl_seconds: int | None = None, overwrite: bool = False
    ) -> APIFuture[SaveWeightsResponse]:
        """Write adapter, optimiser and random state.

        Args:
            name: A path, or a bare name for a folder under EVERYTURN_HOME.
            ttl_seconds: Accepted and not used: what is saved here stays until it is deleted.
            overwrite: Accepted and not used: a saved state of that name is always replaced.

        Raises (at `.result()`):
            ConfigError: if `name` is no name of a folder.
            CheckpointError: if anything but a saved state is there already.
            NotFiniteError: if the adapter computes NaN or Inf; nothing is written.
        """
        return self._line.now(lambda: self._save_state(name))

    async def save_state_async(
        self, name: str, ttl_seconds: int | None = None, overwrite: bool = False
    ) -> APIFuture[SaveWeightsResponse]:
        """Like `save_state`."""
        return self._line.soon(lambda: self._save_state(name))

    def load_state(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """Load the adapter of a saved state; the optimiser starts afresh.

        Args:
            path: What a save gave back.
            weights_access_token: Accepted and not used: files here need none.

        Raises (at `.result()`):
            CheckpointError: if it is incomplete or of another model or adapter.
        """
        return self._line.now(lambda: self._load_state(path, optimizer=False))

    async def load_state_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """Like `load_state`."""
        return self._line.soon(lambda: self._load_state(path, optimizer=False))

    def load_state_with_optimizer(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """Load a saved state whole; on a CPU training goes on bit by bit as it would have.

        Its arguments and errors are those of `load_state`.
        """
        return self._line.now(lambda: self._load_state(path, optimizer=True))

    async def load_state_with_optimizer_async(
        self, path: str, weights_access_token: str | None = None
    ) -> APIFuture[LoadWeightsResponse]:
        """Like `load_state_with_optimizer`."""
        return self._line.soon(lambda: self._load_state(path, optimizer=True))

    def load_adapter(self, path: str) -> APIFuture[LoadWeightsResponse]:
        """Load the weights of any PEFT folder of this adapter's shape; the optimiser starts afresh.

        Raises (at `.result()`):
            CheckpointError: if it has another shape (named), is damaged, or holds NaN or Inf.
        """
        return self._line.now(lambda: self._load_adapter(path))

    @contextmanager
    def without_adapter(self) -> Iterator[None]:
        """Let the plain calls of the block see the base model alone."""
        with self._policy.without_adapter():
            yield

    def save_weights_for_sampler(
        self, name: str, ttl_seconds: int | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """Write the adapter as a PEFT folder that has been loaded again and compared.

        Args:
            name: A path, or a bare name for a folder under EVERYTURN_HOME.
            ttl_seconds: Accepted and not used: what is saved here stays until it is deleted.

        Raises (at `.result()`):
            NotFiniteError: if a weight is NaN or Inf; nothing is written.
            ConfigError: if `name` is no name of a folder.
            CheckpointError: if the folder does not give the trained policy back, or anything but
                an adapter is there already.
        """
        return self._line.now(lambda: self._save_adapter(name))

    async def save_weights_for_sampler_async(
        self, name: str, ttl_seconds: int | None = None
    ) -> APIFuture[SaveWeightsForSamplerResponse]:
        """Like `save_weights_for_sampler`."""
        return self._line.soon(lambda: self._save_adapter(name))

    def create_sampling_client(self, model_path: str) -> SamplingClient:
        """Return a client that samples from a saved adapter of the same shape.

        Raises:
            CheckpointError: if there is none, or it has another shape.
        """
        return self._line.now(lambda: self._sampler_of(model_path)).result()

    async def create_sampling_client_async(self, model_path: str) -> SamplingClient:
        """Like `create_sampling_client`."""
        return await self._line.soon(lambda: self._sampler_of(model_path))

    def save_weights_and_get_sampling_client(self, name: str | None = None) -> SamplingClient:
        """Return a client that samples from the weights as they are now.

        Args:
            name: Where to write them too; None keeps them in memory.
        """
        return self._line.now(lambda: self._sampler(name)).result()

    async def save_weights_and_get_sampling_client_async(
        self, name: str | None = None
    ) -> SamplingClient:
        """Like `save_weights_and_get_sampling_client`."""
        return await self._line.soon(lambda: self._sampler(name))

    def _save_state(self, name: str) -> SaveWeightsResponse:
        folder = saved_folder(self._settings, name, Saved.STATE)
        self._training.save(folder)
        return SaveWeightsResponse(path=str(folder))

    def _load_state(self, path: str, *, optimizer: bool) -> LoadWeightsResponse:
        folder = saved_folder(self._settings, path, Saved.STATE)
        self._training.load(folder, optimizer=optimizer)
        return LoadWeightsResponse(path=str(folder))

    def _load_adapter(self, path: str) -> LoadWeightsResponse:
        folder = saved_folder(self._settings, path, Saved.ADAPTER)
        self._training.load_adapter(folder)
        return LoadWeightsResponse(path=str(folder))

    def _save_adapter(self, name: str) -> SaveWeightsForSamplerResponse:
        folder = saved_folder(self._settings, name, Saved.ADAPTER)
        self._training.save_adapter(folder)
        return SaveWeightsForSamplerResponse(path=str(folder))

    def _sampler(self, name: str | None) -> SamplingClient:
        if name is not None:
            self._save_adapter(name)
        return SamplingClient(self._policy, self._policy.tensors(), self.base_model, self._line)

    def _sampler_of(self, model_path: str) -> SamplingClient:
        tensors = self._training.read_adapter(
            saved_folder(self._settings, model_path, Saved.ADAPTER)
        )
        return SamplingClient(self._policy, tensors, self.base_model, self._line)


def _batch(data: Sequence[Datum]) -> Sequence[Datum]:
    """Return a batch that its caller can no longer change; what is none, the pass refuses."""
    return list(data) if isinstance(data, Iterable) else data
