"""A trained adapter on its way out: the adapter folder with its card, or a merged model."""

from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from db.settings import Settings
from trainer.catalog import find_model
from trainer.config import TrainConfig
from trainer.engine.client import TrainingClient
from trainer.errors import CheckpointError
from trainer.models import load_base_model, load_tokenizer
from trainer.runs.folder import RunFolder, atomic_folder, read_json, write_text
from trainer.summary import epoch_means, read_metrics


def write_adapter(
    client: TrainingClient, config: TrainConfig, folder: RunFolder, settings: Settings
) -> None:
    """Write `adapter/`: PEFT's files, the tokenizer with its chat template, and a model card."""
    with atomic_folder(folder.adapter) as temporary:
        client.save_weights_for_sampler(str(temporary)).result()
        client.get_tokenizer().save_pretrained(temporary)
        write_text(temporary / "README.md", model_card(config, folder, settings))


def export_adapter(folder: RunFolder, out: Path) -> None:
    """Copy the run's adapter folder to `out`.

    Raises:
        CheckpointError: if the run has no adapter, or `out` is taken.
    """
    source = _adapter_of(folder, out)
    with atomic_folder(out) as temporary:
        for file in source.iterdir():
            (temporary / file.name).write_bytes(file.read_bytes())


def export_merged(folder: RunFolder, out: Path, settings: Settings) -> None:
    """Write a whole model in which the adapter is merged into the base weights (safetensors).

    Raises:
        CheckpointError: if the run has no adapter, or `out` is taken.
        ModelError: if the base model cannot be had.
    """
    source = _adapter_of(folder, out)
    config = TrainConfig.from_json(read_json(folder.config))
    base = load_base_model(settings, config.base_model, device=torch.device("cpu"))
    merged = PeftModel.from_pretrained(base, str(source)).merge_and_unload()
    with atomic_folder(out) as temporary:
        merged.save_pretrained(temporary)
        load_tokenizer(settings, config.base_model).save_pretrained(temporary)


def model_card(config: TrainConfig, folder: RunFolder, settings: Settings) -> str:
    """Return the adapter's README: what it is, how to load it, what it was trained with."""
    base = find_model(settings, config.base_model)
    base_name = base.hub_id or base.title
    rows = read_metrics(folder)
    first_epoch = [row for row in rows if row["epoch"] == 0]
    rewards = [row["reward"] for row in first_epoch if row["reward"] is not None]
    conversations = {row["conversation"] for row in first_epoch}
    lines = [
        "---",
        f"base_model: {base_name}",
        "library_name: peft",
        "pipeline_tag: text-generation",
        "tags: [lora, multi-turn-ppo, everyturn]",
        "---",
        "",
        f"# LoRA adapter for {base.title}, trained with EveryTurn",
        "",
        "Trained with multi-turn PPO on scores that people gave to each assistant turn.",
        "",
        "```python",
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        f'base = AutoModelForCausalLM.from_pretrained("{base_name}")',
        'model = PeftModel.from_pretrained(base, "path/of/this/folder")',
        'tokenizer = AutoTokenizer.from_pretrained("path/of/this/folder")',
        "```",
        "",
        "## Data",
        "",
        f"{len(conversations)} conversations, {len(first_epoch)} trained turns, "
        f"{sum(row['response_tokens'] for row in first_epoch)} reply tokens.",
        *_reward_line(rewards),
        "",
        "## Metrics",
        "",
        "| epoch | loss, mean over turns | ratio | clip fraction | KL (nats/token) | log-probability (nats/token) |",
        "|---|---|---|---|---|---|",
        *(_epoch_line(epoch) for epoch in epoch_means(rows)),
        "",
        "## Configuration",
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in config.to_json().items()),
        "",
    ]
    return "\n".join(lines)


def _reward_line(rewards: list[float]) -> list[str]:
    if not rewards:
        return []
    mean = sum(rewards) / len(rewards)
    return [f"Scores from {min(rewards):g} to {max(rewards):g}, mean {mean:.3f}."]


def _epoch_line(epoch: dict[str, Any]) -> str:
    return (
        f"| {epoch['epoch'] + 1} | {epoch['loss_mean']:.4f} | {epoch['ratio_mean']:.4f} "
        f"| {epoch['clipfrac']:.1%} | {epoch['kl_mean']:.4f} | {epoch['logprob_mean']:.4f} |"
    )


def _adapter_of(folder: RunFolder, out: Path) -> Path:
    if not folder.adapter.is_dir():
        raise CheckpointError(
            "this run has no adapter (yet)",
            where=str(folder.path),
            remedy="Let it finish, or resume it with `python -m trainer resume`.",
        )
    if out.exists():
        raise CheckpointError(
            "there is something already", where=str(out), remedy="Choose another name."
        )
    return folder.adapter
