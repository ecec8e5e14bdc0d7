"""The adapters that may be asked for by name: those of finished runs, and any that were named."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from db.settings import Settings
from trainer.adapter_config import CONFIG_FILE, WEIGHTS_FILE, read_adapter_config
from trainer.catalog import is_same_model
from trainer.engine.adapter import read_adapter_tensors
from trainer.errors import CheckpointError, ConfigError, ModelError, TrainerError, shortened
from trainer.runs.folder import RunFolder, sha256_of
from trainer.serving.passes import adaptable_layers, in_and_out
from trainer.serving.rows import Update, Updates

BASE = "base"
"""The name under which the model without any adapter answers."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

KEPT_ADAPTERS = 8
"""So many adapters stay loaded; the one that was not asked for the longest goes first."""

KEY = re.compile(r"base_model\.model\.(?P<layer>.+)\.lora_(?P<part>[AB])\.weight")


class UnknownModelError(ModelError):
    """Nobody answers to that name."""


class RefusedAdapterError(CheckpointError):
    """There is an adapter of that name, and it cannot be used with this base model."""


@dataclass(frozen=True, slots=True, eq=False)
class Answerer:
    """Who answers: the base model, or an adapter on it.

    Attributes:
        updates: The adapter's updates, None for the base.
        fingerprint: Tells these weights from others.
    """

    updates: Updates | None
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An adapter that was found.

    Attributes:
        name: What it is asked for by.
        folder: PEFT's folder.
        refusal: Why it cannot be used, empty if it can as far as its config tells.
    """

    name: str
    folder: Path
    refusal: str = ""


def offers(
    settings: Settings, base_model: str, named: Mapping[str, Path] | None = None
) -> list[Offer]:
    """Return the adapters of finished runs, by run, then those that were named.

    Args:
        settings: Where the runs are.
        base_model: The base model that is served, as `trainer.catalog` names it.
        named: Further PEFT folders by name.
    """
    found: dict[str, Path] = {}
    if settings.runs_dir.is_dir():
        ids = [p.name for p in settings.runs_dir.iterdir() if p.name.isascii() and p.name.isdigit()]
        for run_id in sorted(ids, key=int):
            folder = RunFolder(settings.run_dir(int(run_id))).adapter
            if folder.is_dir():
                found[f"run-{run_id}"] = folder
    found.update(named or {})
    return [
        Offer(name=name, folder=folder, refusal=_refusal(settings, base_model, folder))
        for name, folder in found.items()
    ]


def parse_named(texts: list[str]) -> dict[str, Path]:
    """Return the folders of `NAME=FOLDER` texts.

    Raises:
        ConfigError: if a text has another form, or the name is taken or unsafe.
    """
    named: dict[str, Path] = {}
    for text in texts:
        name, _, folder = text.partition("=")
        if not NAME.fullmatch(name) or not folder or name == BASE or name in named:
            raise ConfigError(
                f"{shortened(text)!r} names no adapter",
                where="--adapter",
                remedy="Write NAME=FOLDER; the name of letters, digits, '.', '_' and '-', not "
                f"{BASE!r}, and each only once.",
            )
        named[name] = Path(folder)
    return named


class Shelf:
    """Loads adapters when they are asked for, and keeps the latest.

    Attributes:
        tokenizer: The base model's.
        base_model: Its name.
    """

    def __init__(
        self,
        settings: Settings,
        base_model: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        named: Mapping[str, Path] | None = None,
    ) -> None:
        """Serve adapters of this model."""
        self.tokenizer = tokenizer
        self.base_model = base_model
        self._settings = settings
        self._named = dict(named or {})
        self._device = model.device
        self._shapes = {
            layer: in_and_out(model.get_submodule(layer)) for layer in adaptable_layers(model)
        }
        self._base = Answerer(None, base_model)
        self._loaded: OrderedDict[str, tuple[tuple[Any, ...], Answerer]] = OrderedDict()

    def offers(self) -> list[Offer]:
        """Return what there is now, with the reason where something cannot be used."""
        return offers(self._settings, self.base_model, self._named)

    def answerer(self, name: str) -> Answerer:
        """Return who answers to a name; an adapter is loaded, or loaded anew if it has changed.

        Raises:
            UnknownModelError: if nobody does.
            RefusedAdapterError: if it belongs to another base model, or is damaged.
        """
        offer = self.check(name)
        if offer is None:
            return self._base
        try:
            state = _state(offer.folder)
        except OSError as error:
            raise refused(name, f"its files cannot be read ({error.strerror})") from error
        if name in self._loaded and self._loaded[name][0] == state:
            self._loaded.move_to_end(name)
            return self._loaded[name][1]
        answerer = self._load(name, offer.folder)
        self._loaded[name] = (state, answerer)
        while len(self._loaded) > KEPT_ADAPTERS:
            self._loaded.popitem(last=False)
        return answerer

    def check(self, name: str) -> Offer | None:
        """Return the adapter of a name, None if it is the base model's, as far as its config tells.

        Raises:
            UnknownModelError: if nobody answers to it.
            RefusedAdapterError: if its config says that it cannot be used.
        """
        if name in (BASE, self.base_model):
            return None
        offer = next((offer for offer in self.offers() if offer.name == name), None)
        if offer is None:
            raise UnknownModelError(
                "there is no such model, or its adapter is gone",
                where=f"model {shortened(name)!r}",
                remedy=f"Ask for {BASE!r}, or for the adapter of a finished run: 'run-' and its number.",
            )
        if offer.refusal:
            raise refused(name, offer.refusal)
        return offer

    def _load(self, name: str, folder: Path) -> Answerer:
        try:
            config = read_adapter_config(folder)
            updates = self._updates(config, read_adapter_tensors(folder))
            digest = sha256_of(folder / WEIGHTS_FILE)
        except TrainerError as error:
            raise refused(name, error.what) from error
        except OSError as error:
            raise refused(name, f"its files cannot be read ({error.strerror})") from error
        return Answerer(updates, f"{self.base_model}+{digest[:16]}")

    def _updates(self, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Updates:
        """Return the updates, each held against the layer that it is for."""
        scale = float(config["lora_alpha"]) / int(config["r"])
        parts: dict[str, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            match = KEY.fullmatch(key)
            if match is None or match["layer"] not in self._shapes:
                raise CheckpointError(f"this base model has no layer for {shortened(key)!r}")
            if not bool(tensor.isfinite().all()):
                raise CheckpointError(f"it holds NaN or Inf ({shortened(key)})")
            parts.setdefault(match["layer"], {})[match["part"]] = tensor
        rank = int(config["r"])
        for layer, pair in parts.items():
            inputs, outputs = self._shapes[layer]
            expected = {"A": (rank, inputs), "B": (outputs, rank)}
            if {part: tuple(tensor.shape) for part, tensor in pair.items()} != expected:
                raise CheckpointError(f"its shapes do not fit the base model's {layer}")
        return {
            layer: Update(
                down_IR=pair["A"].to(self._device, torch.float32).T.contiguous(),
                up_RO=pair["B"].to(self._device, torch.float32).T.contiguous(),
                scale=scale,
            )
            for layer, pair in parts.items()
        }


def _state(folder: Path) -> tuple[Any, ...]:
    """Return what changes when an adapter's files do."""
    stats = [(folder / file).stat() for file in (CONFIG_FILE, WEIGHTS_FILE)]
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)


def _refusal(settings: Settings, base_model: str, folder: Path) -> str:
    try:
        trained_on = str(read_adapter_config(folder)["base_model_name_or_path"])
    except CheckpointError as error:
        return error.what
    if is_same_model(settings, base_model, trained_on):
        return ""
    return f"it was trained on {shortened(trained_on)}, and {base_model} is served"


def refused(name: str, why: str) -> RefusedAdapterError:
    """Return the error for an adapter that cannot answer."""
    return RefusedAdapterError(
        f"this adapter is refused: {why}",
        where=f"model {name!r}",
        remedy="Serve the base model that it was trained on, or export it again from its run.",
    )
