"""The LoRA adapter of a model: attach it, write it as a plain PEFT folder, read it back."""

import copy
import re
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from trainer.adapter_config import WEIGHTS_FILE, read_adapter_config
from trainer.engine.lora import LoraLinear
from trainer.errors import CheckpointError, ConfigError, shortened

ADAPTER = "default"
"""The name under which peft keeps the adapter that is trained."""

Shapes = dict[str, torch.Size]
"""The shapes of an adapter's tensors by the keys that its file has."""

IN_A_BLOCK = re.compile(r"\.\d+\.")
"""Blocks are numbered; the output head, embeddings and final norm lie outside of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterShape:
    """What an adapter looks like, before it has learnt anything.

    Attributes:
        base_name: What other tools know the base model by; ends up in the adapter's config.
        rank: Rank of the update.
        alpha: The update is scaled by alpha / rank.
        attention: Whether the blocks' attention layers are adapted.
        other: Whether the blocks' other linear layers are adapted.
    """

    base_name: str
    rank: int
    alpha: float
    attention: bool = True
    other: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the shape as JSON data."""
        return asdict(self)


def attach_adapter(model: PreTrainedModel, shape: AdapterShape, *, seed: int | None) -> PeftModel:
    """Put a fresh LoRA adapter (Hu et al. 2021, arXiv 2106.09685) on the blocks' linear layers.

    B starts at 0, so that the fresh adapter changes nothing; the output head, often tied to the
    embeddings, is never adapted. Dropout is 0: it would make the first ratios differ from 1.

    Args:
        model: The base model; its layers are wrapped in place.
        shape: Rank, strength and layers.
        seed: Fixes the initial A; None draws a new one.

    Raises:
        ConfigError: if the shape leaves no layer to adapt.
    """
    targets = block_linears(model, attention=shape.attention, other=shape.other)
    if not targets:
        raise ConfigError(
            "there is no layer to adapt",
            where="train_attn / train_mlp",
            remedy="Switch at least one of them on.",
        )
    config = LoraConfig(
        r=shape.rank,
        # Typed int and used as a number: a whole one is written as other tools expect it.
        lora_alpha=int(shape.alpha) if shape.alpha.is_integer() else shape.alpha,  # pyright: ignore[reportArgumentType]
        lora_dropout=0.0,
        bias="none",
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    config._register_custom_module({nn.Linear: LoraLinear})
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
        # peft asks transformers for a name that transformers is about to drop.
        warnings.simplefilter("ignore", FutureWarning)
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        adapted = get_peft_model(model, config)
    adapted.peft_config[
        ADAPTER
    ].base_model_name_or_path = shape.base_name  # not this machine's path
    return adapted.eval()


def block_linears(model: PreTrainedModel, *, attention: bool, other: bool) -> list[str]:
    """Return the names (last components) of the linear layers inside the model's blocks."""
    names: set[str] = set()
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear | Conv1D) and IN_A_BLOCK.search(path):
            block_part = path[IN_A_BLOCK.search(path).end() :]  # pyright: ignore[reportOptionalMemberAccess]
            if attention if is_attention(block_part) else other:
                names.add(path.rpartition(".")[2])
    return sorted(names)


def is_attention(path: str) -> bool:
    """Return whether a layer's path inside its block says that it belongs to attention."""
    return "attn" in path or "attention" in path


def adapter_tensors(model: PeftModel, name: str = ADAPTER) -> dict[str, Tensor]:
    """Return the adapter's weights under the keys that its file has, on the CPU."""
    tensors = get_peft_model_state_dict(model, adapter_name=name, save_embedding_layers=False)
    return {key: value.detach().cpu().contiguous() for key, value in tensors.items()}


def write_adapter_folder(model: PeftModel, folder: Path) -> None:
    """Write the adapter as PEFT itself would, and check that it reads back unchanged.

    Raises:
        CheckpointError: if what lies on the disk is not what was written.
    """
    config = copy.deepcopy(model.peft_config[ADAPTER])
    config.inference_mode = True
    config.target_modules = sorted(config.target_modules)  # pyright: ignore[reportAttributeAccessIssue]
    config.save_pretrained(str(folder))
    tensors = adapter_tensors(model)
    save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    read = load_file(folder / WEIGHTS_FILE)
    if read.keys() != tensors.keys() or any(
        not torch.equal(read[key], tensors[key]) for key in tensors
    ):
        raise CheckpointError(
            "the adapter on disk differs from the one in memory",
            where=str(folder),
            remedy="Check the disk, then save again.",
        )


def read_adapter_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the weights in a PEFT folder.

    Raises:
        CheckpointError: if the folder has none, or the file is damaged.
    """
    try:
        return load_file(folder / WEIGHTS_FILE)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{WEIGHTS_FILE} cannot be read ({error})",
            where=str(folder),
            remedy="Name a folder that was written by a finished save.",
        ) from error


def read_finite_adapter(folder: Path) -> dict[str, Tensor]:
    """Return the weights in a PEFT folder, none of them NaN or Inf.

    Raises:
        CheckpointError: if the folder has none, the file is damaged, or a weight is not finite.
    """
    tensors = read_adapter_tensors(folder)
    if all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        return tensors
    raise CheckpointError(
        "the adapter holds NaN or Inf", where=str(folder), remedy="Take another one."
    )


def read_adapter_shape(folder: Path) -> AdapterShape:
    """Return the shape of the adapter in a PEFT folder.

    Raises:
        CheckpointError: if the folder holds no LoRA adapter.
    """
    try:
        config = read_adapter_config(folder)
    except CheckpointError as error:
        raise CheckpointError(
            error.what,
            where=str(folder),
            remedy="Name a folder that holds a LoRA adapter in PEFT's format.",
        ) from error
    keys = read_adapter_tensors(folder)
    return AdapterShape(
        base_name=config["base_model_name_or_path"],
        rank=config["r"],
        alpha=float(config["lora_alpha"]),
        attention=any(is_attention(key) for key in keys),
        other=any(not is_attention(key) for key in keys),
    )


def set_adapter_tensors(model: PeftModel, tensors: dict[str, Tensor], *, origin: str) -> None:
    """Overwrite the adapter's weights.

    Args:
        model: The model whose adapter changes.
        tensors: Weights under the keys of an adapter file.
        origin: Where they come from, for the message.

    Raises:
        CheckpointError: if keys or shapes are not those of this adapter.
    """
    expected = {key: value.shape for key, value in adapter_tensors(model).items()}
    given = {key: value.shape for key, value in tensors.items()}
    if expected != given:
        raise CheckpointError(
            "the adapter was made for another model, rank or choice of layers: "
            f"{_difference(expected, given)}",
            where=origin,
            remedy="Use the base model, rank and layers it was trained with.",
        )
    set_peft_model_state_dict(model, tensors, adapter_name=ADAPTER)


def _difference(expected: Shapes, given: Shapes) -> str:
    """Return in words what two adapters' tensors differ in, by the names of their layers."""
    missing, unknown = _layers(expected) - _layers(given), _layers(given) - _layers(expected)
    if missing or unknown:
        parts = [
            f"it {what} {', '.join(sorted(names))}"
            for what, names in (("has nothing for", missing), ("also has", unknown))
            if names
        ]
        return " and ".join(parts)
    for key in sorted(expected.keys() ^ given.keys()):
        return f"{shortened(key)} is in only one of the two"
    key = next(key for key in sorted(expected) if expected[key] != given[key])
    return f"{shortened(key)} is {tuple(given[key])}, and {tuple(expected[key])} is wanted"


def _layers(shapes: Shapes) -> set[str]:
    """Return the kinds of layers that tensors belong to, such as q_proj."""
    return {key.partition(".lora_")[0].rpartition(".")[2] for key in shapes}
