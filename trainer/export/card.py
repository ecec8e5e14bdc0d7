"""The README of an export: what it is, how to use it, what it was trained with."""

from collections.abc import Sequence
from typing import Any

from db.settings import Settings
from trainer.catalog import BaseModel, find_model
from trainer.config import TrainConfig
from trainer.export.usage import Form, ways
from trainer.runs.folder import RunFolder, read_json
from trainer.summary import epoch_means, read_metrics

TITLES = {
    Form.ADAPTER: "LoRA adapter for {}",
    Form.MERGED: "{}, with a LoRA adapter merged in",
    Form.GGUF: "{} with a LoRA adapter merged in, for llama.cpp",
    Form.GGUF_ADAPTER: "LoRA adapter for {}, for llama.cpp",
}

LIBRARIES = {
    Form.ADAPTER: "peft",
    Form.MERGED: "transformers",
    Form.GGUF: "llama.cpp",
    Form.GGUF_ADAPTER: "llama.cpp",
}


def model_card(
    config: TrainConfig,
    folder: RunFolder,
    settings: Settings,
    form: Form = Form.ADAPTER,
    *,
    notes: Sequence[str] = (),
) -> str:
    """Return the card of a run's model in one of its forms.

    Args:
        config: What it was trained with.
        folder: The run's folder, for metrics and summary.
        settings: Where base models are, for the base model's portable name.
        form: Which form.
        notes: Sentences about this export, such as how it was checked.
    """
    base = find_model(settings, config.base_model)
    rows = read_metrics(folder)
    first_epoch = [row for row in rows if row["epoch"] == 0]
    rewards = [row["reward"] for row in first_epoch if row["reward"] is not None]
    conversations = {row["conversation"] for row in first_epoch}
    lines = [
        "---",
        f"base_model: {portable_name(base)}",
        f"library_name: {LIBRARIES[form]}",
        "pipeline_tag: text-generation",
        "tags: [lora, multi-turn-ppo, everyturn]",
        "---",
        "",
        f"# {TITLES[form].format(base.title)}, trained with EveryTurn",
        "",
        "Trained with multi-turn PPO on scores that people gave to each assistant turn.",
        *(["", *notes] if notes else []),
        "",
        "## Use it",
        "",
    ]
    for way in ways(form, folder="path/of/this/folder", base=portable_name(base)):
        lines += [f"{way.title}:", "", f"```{way.language}", way.text, "```", ""]
    lines += [
        "## Data",
        "",
        f"{len(conversations)} conversations, {len(first_epoch)} trained turns, "
        f"{sum(row['response_tokens'] for row in first_epoch)} reply tokens.",
        *_reward_line(rewards),
        "",
        "## Metrics",
        "",
        kept_epoch(folder),
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


def portable_name(base: BaseModel) -> str:
    """Return the name by which other machines find the base model, never a path of this one."""
    return base.hub_id or base.title


def kept_epoch(folder: RunFolder) -> str:
    """Return a sentence that says which epoch's weights these are, and why."""
    if not folder.summary.exists():
        return "The weights are those after the last step."
    summary = read_json(folder.summary)
    held_out = summary.get("held_out")
    if held_out is None:
        return f"The weights are those after the last of {summary['steps']} steps."
    best = held_out["best_epoch"]
    if best is None:
        return (
            "The weights are those after the last epoch; no epoch did better on the held-out "
            "conversations than the model it started from."
        )
    return f"The weights are those after epoch {best + 1}, the best on held-out conversations."


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
