"""The training API of the Tinker / MinT family, computed in this process.

Calls return an `APIFuture`; each `_async` twin returns the same future from a coroutine, so that
code written for the remote service runs unchanged.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from db.settings import Settings, read_settings
from trainer.catalog import find_model, name_of_hub_id
from trainer.engine.adapter import AdapterShape, read_adapter_shape, read_adapter_tensors
from trainer.engine.futures import APIFuture
from trainer.engine.gradients import BatchRunner
from trainer.engine.losses import LossConfig, loss_function
from trainer.engine.memory import peak_memory_bytes
from trainer.engine.metrics import figure_sums, pass_metrics
from trainer.engine.optimizer import Optimizer
from trainer.engine.policy import Policy
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
from trainer.errors import ConfigError

logger = logging.getLogger(__name__)

LossSettings = LossConfig | Mapping[str, float] | None


def choose_device(name: str) -> torch.device:
    """Return the device that "auto", "cpu" or "cuda" stands for on this machine.

    Raises:
        ConfigError: if CUDA is asked for and there is none, or the name is unknown.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "torch finds no CUDA device",
            where="device",
            remedy="Choose auto or cpu, or install the driver and a CUDA build of torch.",
        )
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"there is no device {name!r}", where="device", remedy="Use auto.")
    return (
        torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device(name)
    )


class ServiceClient:
    """Gives out training and sampling clients.

    Args:
        base_url: Must be None: this engine is local.
        api_key: Not needed locally.
        device: "auto", "cpu" or "cuda".
        settings: Where models and saved adapters lie; read from the environment if None.

    Raises:
        ConfigError: if a `base_url` is given, or the device does not exist.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        device: str = "auto",
        settings: Settings | None = None,
    ) -> None:
        """Choose the device; nothing is loaded yet."""
        if base_url is not None:
            raise ConfigError(
                f"this client computes locally and cannot use {base_url!r}",
                where="base_url",
                remedy="Leave base_url out.",
            )
        self._device = choose_device(device)
        self._settings = settings or read_settings()

    def create_lora_training_client(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        *,
        alpha: float = 32.0,
        token_budget: int = 2048,
    ) -> "TrainingClient":
        """Load a base model with a fresh adapter.

        Args:
            base_model: Name of a listed model, a hub id, or a local folder.
            rank: Rank of the adapter.
            seed: Fixes the adapter's initial weights.
            train_mlp: Whether the blocks' feed-forward layers are adapted.
            train_attn: Whether the blocks' attention layers are adapted.
            train_unembed: Accepted as the permission it is in the remote API, and not used: the
                output head, which small models share with their embeddings, is never adapted.
            alpha: The adapter's output is scaled by alpha / rank.
            token_budget: Most distinct tokens that go through the model at once.

        Raises:
            ModelError: if the model cannot be had.
            ConfigError: if no layer is left to adapt.
        """
        known = find_model(self._settings, base_model)
        shape = AdapterShape(
            base_name=known.hub_id or base_model,
            rank=rank,
            alpha=alpha,
            attention=train_attn,
            other=train_mlp,
        )
        policy = Policy.load(
            self._settings, base_model, device=self._device, shape=shape, seed=seed
        )
        logger.info("%s on %s: %s.", base_model, self._device, policy.path_reason)
        return TrainingClient(policy, base_model, self._settings, token_budget=token_budget)

    async def create_lora_training_client_async(
        self, base_model: str, rank: int = 32, **settings: Any
    ) -> "TrainingClient":
        """Like `create_lora_training_client`."""
        return self.create_lora_training_client(base_model, rank, **settings)

    def create_sampling_client(
        self, model_path: str | None = None, base_model: str | None = None
    ) -> SamplingClient:
        """Load a base model, or the base model of a saved adapter together with it.

        Raises:
            ConfigError: if neither or both are given.
            ModelError: if the model cannot be had.
            CheckpointError: if the adapter cannot be read.
        """
        if (model_path is None) == (base_model is None):
            raise ConfigError("give either model_path or base_model", where="sampling client")
        if base_model is not None:
            shape = AdapterShape(base_name=base_model, rank=1, alpha=1.0)
            policy = Policy.load(self._settings, base_model, device=self._device, shape=shape)
            return SamplingClient(policy, policy.tensors())
        folder = saved_folder(self._settings, str(model_path))
        shape = read_adapter_shape(folder)
        policy = Policy.load(
            self._settings, name_of_hub_id(shape.base_name), device=self._device, shape=shape
        )
        return SamplingClient(policy, read_adapter_tensors(folder))


class TrainingClient:
    """Trains one adapter: passes accumulate gradients, `optim_step` uses them.

    Attributes:
        base_model: The name it was created with.
        device: Where it computes.
        path_reason: In words, whether shared prefixes are computed once, and why.
    """

    def __init__(
        self, policy: Policy, base_model: str, settings: Settings, *, token_budget: int
    ) -> None:
        """Train the policy's adapter."""
        self.base_model = base_model
        self.device = policy.device
        self.path_reason = policy.path_reason
        self._policy = policy
        self._settings = settings
        self._runner = BatchRunner(policy, token_budget)
        self._optimizer = Optimizer(policy.trainable())

    @property
    def computed_tokens(self) -> int:
        """Tokens sent through the model so far, shared prefixes counted once a pass."""
        return self._policy.computed_tokens

    def peak_memory_bytes(self) -> int:
        """Return the most memory used so far by the process, or on the CUDA device."""
        return peak_memory_bytes(self.device)

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
            return OptimStepOutput(metrics={"grad_norm:last": self._optimizer.step(adam_params)})

        return APIFuture.run(compute)

    def save_state(self, name: str) -> APIFuture[SaveResponse]:
        """Write adapter, optimiser and random state.

        Args:
            name: A path, or a bare name for a folder under EVERYTURN_HOME.
        """

        def compute() -> SaveResponse:
            folder = saved_folder(self._settings, name)
            write_state(folder, self._policy, self._optimizer, self._facts())
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
            self._policy.write(folder)
            self._policy.check_saved(folder)
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

    def _facts(self) -> dict[str, Any]:
        """Return what a saved state must have in common with this client."""
        return self._policy.shape.to_json()


def saved_folder(settings: Settings, name: str) -> Path:
    """Return where a saved state or adapter lies: a path as it is, a bare name in the home."""
    path = Path(name).expanduser()
    is_bare = path.name == name
    return settings.home / "adapters" / name if is_bare else path.resolve()
