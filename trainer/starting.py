"""The adapter that a run starts from: found, held against the settings, copied. No torch."""

from pathlib import Path
from typing import Any

from db.settings import Settings
from trainer.adapter_config import CONFIG_FILE, WEIGHTS_FILE, read_adapter_config
from trainer.catalog import is_same_model
from trainer.config import TrainConfig
from trainer.errors import CheckpointError, ConfigError, shortened
from trainer.runs.folder import RunFolder, atomic_folder

WHERE = "setting start_from"

SOME_LAYERS = ("layers_to_transform", "exclude_modules")
"""Where an adapter's config says that it leaves out layers which a run here adapts."""


def run_of(start_from: str) -> int | None:
    """Return the run that a setting `start_from` names by its number; None if it names a folder."""
    is_number = start_from.isascii() and start_from.isdigit() and len(start_from) < 19
    return int(start_from) if is_number else None


def start_name(config: TrainConfig) -> str:
    """Return what people call that which a run starts from."""
    number = run_of(config.start_from)
    if number is not None:
        return f"run {number}"
    return config.start_from or "the base model"


def find_start(settings: Settings, config: TrainConfig) -> Path | None:
    """Return the folder of the adapter that a run is to start from; None for the base model.

    Raises:
        ConfigError: if there is none, or it is not what this run trains: every difference is named.
    """
    if not config.start_from:
        return None
    number = run_of(config.start_from)
    named = Path(config.start_from).expanduser() if number is None else settings.run_dir(number)
    inside = RunFolder(named).adapter
    folder = inside if number is not None or inside.is_dir() else named
    if not (folder / CONFIG_FILE).is_file() or not (folder / WEIGHTS_FILE).is_file():
        name = f"run {number}" if number is not None else shortened(config.start_from)
        raise ConfigError(
            f"{name} has no adapter (any more)",
            where=WHERE,
            remedy="Name a finished run, or a folder with an adapter in PEFT's form; or start from "
            "the base model.",
        )
    try:
        found = read_adapter_config(folder)
    except CheckpointError as error:
        raise ConfigError(
            f"this adapter cannot be gone on from: {error.what}",
            where=f"{WHERE}, {shortened(str(folder))}",
            remedy="Start from another adapter, or from the base model.",
        ) from error
    differences = _differences(settings, config, found)
    if differences:
        raise ConfigError(
            f"the adapter does not fit this run: {'; '.join(differences)}",
            where=WHERE,
            remedy="Give the run the same base model and adapter settings, or start from the base "
            "model.",
        )
    return folder.resolve()


def _differences(settings: Settings, config: TrainConfig, found: dict[str, Any]) -> list[str]:
    differences: list[str] = []
    trained_on = str(found["base_model_name_or_path"])
    if not is_same_model(settings, config.base_model, trained_on):
        differences.append(
            f"it was trained on {shortened(trained_on)}, this run's base model is "
            f"{shortened(config.base_model)}"
        )
    if int(found["r"]) != config.lora_rank:
        differences.append(f"its rank is {found['r']}, this run's {config.lora_rank}")
    if float(found["lora_alpha"]) != config.lora_alpha:
        differences.append(
            f"its alpha is {found['lora_alpha']:g}, this run's {config.lora_alpha:g}"
        )
    differences += [
        f"it changes only some of the model's layers ({key}), this run changes all blocks alike"
        for key in SOME_LAYERS
        if found.get(key)
    ]
    return differences


def settled(config: TrainConfig, start: Path | None) -> TrainConfig:
    """Return the configuration with a folder named so that it means the same everywhere."""
    if start is None or run_of(config.start_from) is not None:
        return config
    return config.replace(start_from=str(start))


def copy_start(start: Path | None, folder: RunFolder) -> None:
    """Copy the adapter's weights into the run's folder: the earlier run may be deleted then.

    Raises:
        OSError: if a file cannot be read or written.
    """
    if start is None:
        return
    with atomic_folder(folder.start) as temporary:
        for name in (CONFIG_FILE, WEIGHTS_FILE):
            (temporary / name).write_bytes((start / name).read_bytes())
