"""How the base model's frozen weights are held: fp32, bf16, or four bits."""

import importlib.util
from typing import Any

import torch
from transformers import BitsAndBytesConfig

from trainer.choices import BasePrecision
from trainer.errors import ConfigError


def loading_options(precision: BasePrecision, device: torch.device) -> dict[str, Any]:
    """Return what `from_pretrained` must be told to load weights in this precision.

    Four bits are NF4 with doubly quantised scales (QLoRA, Dettmers et al. 2023, arXiv 2305.14314),
    computed with in bf16; embeddings, norms and the output head stay in bf16.

    Raises:
        ConfigError: if the precision cannot be had on this device or machine.
    """
    on_cuda = device.type == "cuda"
    if precision is BasePrecision.AUTO:
        return {"dtype": torch.bfloat16 if on_cuda else torch.float32}
    if precision is not BasePrecision.FOUR_BIT:
        return {"dtype": torch.float32 if precision is BasePrecision.FP32 else torch.bfloat16}
    if not on_cuda:
        raise ConfigError(
            f"4-bit weights need a CUDA device, and this run computes on the {device.type.upper()}",
            where="setting base_precision",
            remedy="Choose auto.",
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ConfigError(
            "4-bit weights need the package bitsandbytes, which is not installed",
            where="setting base_precision",
            remedy="Install it (pip install -r requirements-4bit.txt), or choose auto.",
        )
    return {
        "dtype": torch.bfloat16,
        "device_map": {"": device},  # weights are quantised on their way to the device
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        ),
    }
