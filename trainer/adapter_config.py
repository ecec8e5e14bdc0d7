"""What the config beside an adapter's weights says, and whether EveryTurn can use it; no torch."""

import json
from pathlib import Path
from typing import Any

from db.text import clean_json
from trainer.errors import CheckpointError

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"

PLAIN = {"use_dora": False, "use_rslora": False, "bias": "none", "lora_bias": False}
"""What an adapter's config may say, since only the plain low-rank update is computed here."""

MOST_RANK, MOST_ALPHA = 65_536, 1_000_000
"""Beyond any adapter that somebody has trained: what lies above is damage."""


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """Return the config in a PEFT folder, with at least base model, rank and alpha in it.

    Raises:
        CheckpointError: if it is none that can be used here.
    """
    try:
        config = clean_json(json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8")))
        kind, base = config["peft_type"], config["base_model_name_or_path"]
        rank, alpha = config["r"], config["lora_alpha"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"its {CONFIG_FILE} cannot be read ({error})") from error
    if kind != "LORA" or not isinstance(base, str):
        raise CheckpointError("it is no LoRA adapter")
    if type(rank) is not int or not 1 <= rank <= MOST_RANK:
        raise CheckpointError(f"its rank is no whole number from 1 to {MOST_RANK:,}")
    if type(alpha) not in (int, float) or not 0 < alpha <= MOST_ALPHA:
        raise CheckpointError(f"its alpha is no number above 0, up to {MOST_ALPHA:,}")
    for key, plain in PLAIN.items():
        if config.get(key) not in (plain, None):
            raise CheckpointError(f"its setting {key} is not supported here")
    if config.get("rank_pattern") or config.get("alpha_pattern") or config.get("modules_to_save"):
        raise CheckpointError("its layers differ in rank or alpha, or it replaces whole layers")
    return config
