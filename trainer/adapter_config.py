"""What the config beside an adapter's weights says, and whether EveryTurn can use it; no torch."""

import json
from pathlib import Path
from typing import Any

from trainer.errors import CheckpointError

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"

PLAIN = {"use_dora": False, "use_rslora": False, "bias": "none", "lora_bias": False}
"""What an adapter's config may say, since only the plain low-rank update is computed here."""


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """Return the config in a PEFT folder, with at least base model, rank and alpha in it.

    Raises:
        CheckpointError: if it is none that can be used here.
    """
    try:
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        number = float(config["lora_alpha"]) / int(config["r"])
        kind = config["peft_type"], str(config["base_model_name_or_path"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CheckpointError(f"its {CONFIG_FILE} cannot be read ({error})") from error
    if kind[0] != "LORA" or number <= 0:
        raise CheckpointError("it is no LoRA adapter")
    for key, plain in PLAIN.items():
        if config.get(key) not in (plain, None):
            raise CheckpointError(f"its setting {key} is not supported here")
    if config.get("rank_pattern") or config.get("alpha_pattern") or config.get("modules_to_save"):
        raise CheckpointError("its layers differ in rank or alpha, or it replaces whole layers")
    return config
