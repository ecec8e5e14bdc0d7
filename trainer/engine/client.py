"""The training API of the Tinker / MinT family, computed in this process.

Calls return an `APIFuture`; each `_async` twin returns the same future from a coroutine, so that
code written for the remote service runs unchanged.
"""

import logging
from typing import Any

import torch

from db.settings import Settings, read_settings
from trainer.catalog import find_model, name_of_hub_id
from trainer.choices import BasePrecision
from trainer.engine.adapter import AdapterShape, read_adapter_shape, read_adapter_tensors
from trainer.engine.folders import saved_folder
from trainer.engine.policy import Policy
from trainer.engine.ranks import ALONE, Ranks
from trainer.engine.sampling import SamplingClient
from trainer.engine.training import TrainingClient
from trainer.errors import ConfigError
from trainer.models import load_base_model, load_tokenizer

__all__ = ["SamplingClient", "ServiceClient", "TrainingClient", "choose_device"]

logger = logging.getLogger(__name__)


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
        ranks: The processes that train together, see `trainer.engine.ranks.join_ranks`.

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
        ranks: Ranks = ALONE,
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
        self._ranks = ranks

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
            alpha: The adapter's output is scaled by alpha / rank.
            token_budget: Most distinct tokens that go through the model at once.
            memory_limit_gb: What a pass may take beside the model, in units of 10^9 bytes; 0 for
                most of what is free once the model is loaded.
            base_precision: "auto", "fp32", "bf16" or "4bit": how the frozen weights are held.

        Raises:
            ModelError: if the model cannot be had.
            ConfigError: if no layer is left to adapt, or the precision cannot be had here.
        """
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
        self, base_model: str, rank: int = 32, **settings: Any
    ) -> TrainingClient:
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
