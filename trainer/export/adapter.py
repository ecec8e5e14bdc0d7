"""The adapter as PEFT reads it: written at the end of a run, copied when it is taken away."""

from pathlib import Path

from db.settings import Settings
from trainer.adapter_config import CONFIG_FILE
from trainer.config import TrainConfig
from trainer.engines import Engine
from trainer.export.card import model_card
from trainer.runs.folder import RunFolder, atomic_folder, read_json, write_json, write_text


def write_adapter(
    client: Engine, config: TrainConfig, folder: RunFolder, settings: Settings
) -> None:
    """Write `adapter/`: PEFT's files, the tokenizer with its chat template, and a model card."""
    with atomic_folder(folder.adapter) as temporary:
        client.save_weights_for_sampler(str(temporary)).result()
        client.get_tokenizer().save_pretrained(temporary)
        write_text(temporary / "README.md", model_card(config, folder, settings))


def copy_adapter(source: Path, target: Path, *, base_name: str) -> None:
    """Copy an adapter's files; the base model is named so that other machines find it."""
    for file in source.iterdir():
        if file.is_file():
            (target / file.name).write_bytes(file.read_bytes())
    config = read_json(target / CONFIG_FILE)
    write_json(target / CONFIG_FILE, config | {"base_model_name_or_path": base_name})
