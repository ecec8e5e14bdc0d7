"""The training API of the Tinker / MinT family, computed in this process.

Calls return an `APIFuture`; code written for the remote service runs unchanged. The names are
gathered in `trainer.engine.api`.
"""

import logging
import math
from collections.abc import Mapping
from pathlib import Path

import torch

from db.settings import Settings, read_settings
from trainer.catalog import find_model, list_models, name_of_hub_id
from trainer.choices import BasePrecision
from trainer.engine.adapter import AdapterShape, read_adapter_shape, read_adapter_tensors
from trainer.engine.folders import Saved, saved_folder
from trainer.engine.futures import Line
from trainer.engine.generation import most_tokens
from trainer.engine.policy import Policy
from trainer.engine.ranks import ALONE, Ranks
from trainer.engine.sampling import SEEDS, SamplingClient
from trainer.engine.state import read_shape
from trainer.engine.training_client import TrainingClient
from trainer.engine.types import GetServerCapabilitiesResponse, SupportedModel
from trainer.errors import ConfigError, shortened
from trainer.models import load_base_model, load_config, load_tokenizer

__all__ = ["SamplingClient", "ServiceClient", "TrainingClient", "choose_device"]

logger = logging.getLogger(__name__)

Metadata = Mapping[str, str]


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
        user_metadata: Accepted and not used: there is no console that would show it.
        project_id: Likewise.
        base_url: Must be None: this engine is local. The environment's MINT_BASE_URL and
            TINKER_BASE_URL are for remote engines and change nothing here.
        api_key: Not needed locally.
        device: "auto", "cpu" or "cuda".
        settings: Where models and saved adapters lie; read from the environment if None.
        ranks: The processes that train together, see `trainer.engine.ranks.join_ranks`.

    Raises:
        ConfigError: if a `base_url` is given, or the device does not exist.
    """

    def __init__(
        self,
        user_metadata: Metadata | None = None,
        project_id: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        device: str = "auto",
        settings: Settings | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """Choose the device; nothing is loaded yet."""
        if base_url is not None:
            raise ConfigError(
                f"this client computes locally and cannot use {base_url!r}",
                where="base_url",
                remedy="Leave base_url out; for a remote engine import its own SDK.",
            )
        self._device = choose_device(device)
        self._settings = settings or read_settings()
        self._ranks = ranks
        self._line = Line()

    def get_server_capabilities(self) -> GetServerCapabilitiesResponse:
        """Return the base models that can be trained; others can be named by hub id or folder."""
        return GetServerCapabilitiesResponse(
            supported_models=[
                SupportedModel(
                    model_name=model.name,
                    max_context_length=most_tokens(load_config(self._settings, model.name))
                    if model.available
                    else None,
                )
                for model in list_models(self._settings)
            ]
        )

    async def get_server_capabilities_async(self) -> GetServerCapabilitiesResponse:
        """Like `get_server_capabilities`."""
        return self.get_server_capabilities()

    def create_lora_training_client(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        user_metadata: Metadata | None = None,
        *,
        alpha: float = 32.0,
        token_budget: int = 2048,
        memory_limit_gb: float = 0.0,
        base_precision: str = "auto",
    ) -> TrainingClient:
        """Load a base model with a fresh adapter.

        Args:
            base_model: Name of a listed model, a hub id, or a local folder.
            rank: Rank of the adapter.
            seed: Fixes the adapter's initial weights.
            train_mlp: Whether the blocks' feed-forward layers are adapted.
            train_attn: Whether the blocks' attention layers are adapted.
            train_unembed: Accepted as the permission it is in the remote API, and not used: the
                output head, which small models share with their embeddings, is never adapted.
            user_metadata: Accepted and not used: there is no console that would show it.
            alpha: The adapter's output is scaled by alpha / rank.
            token_budget: Most distinct tokens that go through the model at once.
            memory_limit_gb: What a pass may take beside the model, in units of 10^9 bytes; 0 for
                most of what is free once the model is loaded.
            base_precision: "auto", "fp32", "bf16" or "4bit": how the frozen weights are held.

        Raises:
            ModelError: if the model cannot be had.
            ConfigError: if a setting is out of its range, no layer is left to adapt, or the
                precision cannot be had here.
        """
        _check_adapter(base_model, rank, seed, alpha)
        known = find_model(self._settings, base_model)
        shape = AdapterShape(
            base_name=known.hub_id or base_model,
            rank=rank,
            alpha=float(alpha),
            attention=train_attn,
            other=train_mlp,
        )
        model = load_base_model(
            self._settings,
            base_model,
            device=self._device,
            precision=BasePrecision(base_precision),
        )
        policy = Policy(
            model,
            load_tokenizer(self._settings, base_model),
            shape,
            seed=seed,
            memory_limit_bytes=memory_limit_gb * 1e9 or None,
        )
        logger.info("%s on %s: %s.", base_model, self._device, policy.path_reason)
        return TrainingClient(
            policy, base_model, self._settings, token_budget=token_budget, ranks=self._ranks
        )

    async def create_lora_training_client_async(
        self,
        base_model: str,
        rank: int = 32,
        seed: int | None = None,
        train_mlp: bool = True,
        train_attn: bool = True,
        train_unembed: bool = True,
        user_metadata: Metadata | None = None,
        *,
        alpha: float = 32.0,
        token_budget: int = 2048,
        memory_limit_gb: float = 0.0,
        base_precision: str = "auto",
    ) -> TrainingClient:
        """Like `create_lora_training_client`."""
        return await self._line.soon(
            lambda: self.create_lora_training_client(
                base_model,
                rank,
                seed,
                train_mlp,
                train_attn,
                train_unembed,
                user_metadata,
                alpha=alpha,
                token_budget=token_budget,
                memory_limit_gb=memory_limit_gb,
                base_precision=base_precision,
            )
        )

    def create_training_client_from_state(
        self,
        path: str,
        user_metadata: Metadata | None = None,
        weights_access_token: str | None = None,
    ) -> TrainingClient:
        """Load a saved adapter with its base model; the optimiser starts afresh.

        Args:
            path: What `save_state` gave back.
            user_metadata: Accepted and not used: there is no console that would show it.
            weights_access_token: Accepted and not used: files here need none.

        Raises:
            CheckpointError: if the folder holds no finished state.
            ModelError: if the base model cannot be had.
        """
        client, folder = self._client_like(path)
        client.load_state(str(folder)).result()
        return client

    async def create_training_client_from_state_async(
        self,
        path: str,
        user_metadata: Metadata | None = None,
        weights_access_token: str | None = None,
    ) -> TrainingClient:
        """Like `create_training_client_from_state`."""
        client, folder = await self._line.soon(lambda: self._client_like(path))
        await (await client.load_state_async(str(folder)))
        return client

    def create_training_client_from_state_with_optimizer(
        self,
        path: str,
        user_metadata: Metadata | None = None,
        weights_access_token: str | None = None,
    ) -> TrainingClient:
        """Load a saved state whole with its base model.

        Its arguments and errors are those of `create_training_client_from_state`.
        """
        client, folder = self._client_like(path)
        client.load_state_with_optimizer(str(folder)).result()
        return client

    async def create_training_client_from_state_with_optimizer_async(
        self,
        path: str,
        user_metadata: Metadata | None = None,
        weights_access_token: str | None = None,
    ) -> TrainingClient:
        """Like `create_training_client_from_state_with_optimizer`."""
        client, folder = await self._line.soon(lambda: self._client_like(path))
        await (await client.load_state_with_optimizer_async(str(folder)))
        return client

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
            shape, tensors = AdapterShape(base_name=base_model, rank=1, alpha=1.0), None
        else:
            folder = saved_folder(self._settings, str(model_path), Saved.ADAPTER)
            shape, tensors = read_adapter_shape(folder), read_adapter_tensors(folder)
        name = base_model or name_of_hub_id(shape.base_name)
        policy = Policy.load(self._settings, name, device=self._device, shape=shape)
        return SamplingClient(policy, tensors or policy.tensors(), name, Line(policy.use_device))

    async def create_sampling_client_async(
        self, model_path: str | None = None, base_model: str | None = None
    ) -> SamplingClient:
        """Like `create_sampling_client`."""
        return await self._line.soon(lambda: self.create_sampling_client(model_path, base_model))

    def _client_like(self, path: str) -> tuple[TrainingClient, Path]:
        """Return a fresh client of the shape that a saved state has, and the state's folder."""
        folder = saved_folder(self._settings, path, Saved.STATE)
        shape = read_shape(folder)
        client = self.create_lora_training_client(
            name_of_hub_id(shape.base_name),
            shape.rank,
            train_mlp=shape.other,
            train_attn=shape.attention,
            alpha=shape.alpha,
        )
        return client, folder


def _check_adapter(base_model: object, rank: object, seed: object, alpha: object) -> None:
    if not isinstance(base_model, str):
        what, remedy = f"base_model is {shortened(repr(base_model))}", "Give a model's name."
    elif not isinstance(rank, int) or isinstance(rank, bool) or rank < 1:
        what, remedy = f"rank is {shortened(repr(rank))}", "Give a whole number, 1 or more."
    elif seed is not None and not (isinstance(seed, int) and -SEEDS <= seed < SEEDS):
        what, remedy = (
            f"seed is {shortened(repr(seed))}",
            "Give a whole number of 64 bits, or None.",
        )
    elif not isinstance(alpha, int | float) or not math.isfinite(alpha) or alpha <= 0:
        what, remedy = f"alpha is {shortened(repr(alpha))}", "Give a number above 0."
    else:
        return
    raise ConfigError(what, where="create_lora_training_client", remedy=remedy)
