"""The settings form, built from `TrainConfig`: label, help, unit and limits come from its fields."""

import dataclasses
import math
from enum import StrEnum
from typing import Any, get_type_hints

import streamlit as st

from db.enums import Aggregation
from trainer.config import CreditMode, Guard, Limits, LossName, OldLogprobs, TrainConfig

GROUPS: dict[str, tuple[str, ...]] = {
    "From scores to advantages": ("credit", "gamma", "outcome_weight"),
    "What a turn looks like": ("rendering", "max_context_tokens"),
    "Loss": (
        *("loss", "clip_low", "clip_high", "dual_clip", "old_logprobs"),
        *("guard", "guard_beta", "guard_cap", "loss_scale", "kl_weight", "max_kl"),
    ),
    "Machine": ("device", "base_precision", "token_budget", "memory_limit_gb", "seed"),
    "Training": (
        *("epochs", "batch_conversations", "held_out"),
        *("learning_rate", "warmup_steps", "schedule"),
    ),
    "Adapter": ("lora_rank", "lora_alpha"),
    "Optimiser": ("adam_beta1", "adam_beta2", "adam_eps", "weight_decay", "grad_clip_norm"),
    "Samples before and after": ("sample_prompts", "sample_tokens"),
}
"""Every setting that the form offers, each after those that decide whether it matters."""

CHOSEN_ABOVE = (
    *("preset", "base_model", "start_from", "endpoint", "selection"),
    *("aggregation", "rater"),
)
"""The settings that the page asks for above the form."""

HERE_ONLY = ("device", "base_precision", "memory_limit_gb")
"""Settings of this machine, without effect on an endpoint."""

_NAMES = ("start_from", "endpoint", "selection")
"""Settings that say something only where they are not empty."""

FROM_THE_START = ("lora_rank", "lora_alpha")
"""The settings that an earlier adapter brings along where a run starts from one."""

_FIELDS = {field.name: field for field in dataclasses.fields(TrainConfig)}
_TYPES = get_type_hints(TrainConfig)
_CHOICES = frozenset(
    member.value for kind in _TYPES.values() if issubclass(kind, StrEnum) for member in kind
)


def settings_form(start: TrainConfig, *, origin: str = "") -> TrainConfig:
    """Show the settings in groups, folded, and return the configuration they make.

    Args:
        start: What the form shows first, with the settings that were chosen above it.
        origin: Names where `start` comes from, if not from its method: the form of each origin
            keeps what is typed into it.

    Raises:
        ConfigError: if the settings contradict each other.
    """
    chosen: dict[str, Any] = {}
    prefix = f"launch_{origin}{start.preset.value}"
    with st.expander("More settings", icon=":material/tune:"):
        groups = list(GROUPS.items())
        for column, part in zip(st.columns(2, gap="large"), (groups[:4], groups[4:]), strict=True):
            with column:
                for title, names in part:
                    st.markdown(f"**{title}**")
                    for name in names:
                        if name in FROM_THE_START and start.start_from:
                            continue
                        if matters(name, start.replace(**chosen)):
                            chosen[name] = _widget(name, start, prefix)
    config = start.replace(**chosen)
    above = {name: config.to_json()[name] for name in CHOSEN_ABOVE}
    changed = changes(TrainConfig.from_json(above), config)
    if changed:
        st.caption(f"Changed from the {start.preset.value} method: " + ", ".join(changed))
    return config


def matters(name: str, config: TrainConfig) -> bool:
    """Return whether a setting changes anything under the settings chosen so far."""
    if name in _NAMES:
        return config.to_json()[name] != ""
    if name in HERE_ONLY:
        return config.endpoint == ""
    if name == "rater":
        return config.aggregation is Aggregation.ONE_RATER
    if name == "gamma":
        return config.credit is CreditMode.RETURN_TO_GO
    if name == "outcome_weight":
        return config.credit in (CreditMode.RETURN_TO_GO, CreditMode.OUTCOME)
    if name in ("clip_low", "clip_high", "dual_clip"):
        return config.loss is LossName.PPO
    if name == "old_logprobs":
        return config.loss is not LossName.CROSS_ENTROPY
    if name == "guard":
        return (
            config.loss is not LossName.CROSS_ENTROPY
            and config.old_logprobs is OldLogprobs.STORED_OR_RECOMPUTED
        )
    if name in ("guard_beta", "guard_cap"):
        return matters("guard", config) and config.guard is Guard.EXP_WEIGHTED
    return True


def changes(start: TrainConfig, config: TrainConfig) -> list[str]:
    """Return "label new value" for each setting that differs."""
    before, after = start.to_json(), config.to_json()
    return [
        f"{_FIELDS[name].metadata['label']} {display(after[name])}"
        for name in after
        if after[name] != before[name]
    ]


def labelled(config: TrainConfig) -> list[tuple[str, str, str]]:
    """Return (label, value with unit, help) of every setting that matters, in the form's order."""
    names = [*CHOSEN_ABOVE, *(name for group in GROUPS.values() for name in group)]
    values = config.to_json()
    rows: list[tuple[str, str, str]] = []
    for name in names:
        if matters(name, config):
            meta = _FIELDS[name].metadata
            value = f"{display(values[name])} {meta['unit']}".strip()
            rows.append((meta["label"], value, meta["help"]))
    return rows


def label_of(name: str) -> str:
    """Return what people call a setting."""
    return _FIELDS[name].metadata["label"]


def display(value: str | float) -> str:
    """Return a setting's value as people write it: 1e-12 stays short, choices lose underscores."""
    if isinstance(value, str):
        return value.replace("_", " ") if value in _CHOICES else value
    return f"{value:g}"


def _widget(name: str, start: TrainConfig, prefix: str) -> Any:
    meta = _FIELDS[name].metadata
    label, unit = meta["label"], meta["unit"]
    if unit and unit not in label.lower():
        label = f"{label} ({unit})"
    # The preset is part of the key: each method shows, and keeps, its own values.
    key = f"{prefix}_{name}"
    value = start.to_json()[name]
    if isinstance(value, str):
        options = [member.value for member in _TYPES[name]]
        return st.selectbox(
            label, options, index=options.index(value), format_func=display,
            help=meta["help"], key=key,
        )  # fmt: skip
    limits: Limits = meta["limits"]
    help = f"{meta['help']} It must be {limits}."
    if isinstance(value, int):
        return st.number_input(
            label, min_value=int(limits.low), max_value=int(limits.high), value=value, step=1,
            help=help, key=key,
        )  # fmt: skip
    step = step_of(value)
    return st.number_input(
        label, min_value=lowest(limits, step),
        max_value=float(limits.high), value=value, step=step, format="%g", help=help, key=key,
    )  # fmt: skip


def lowest(limits: Limits, step: float) -> float:
    """Return the least value that the field lets people type; what it allows too much is refused."""
    if limits.or_zero:
        return 0.0
    return step if limits.exclusive else float(limits.low)


def step_of(value: float) -> float:
    """Return a tenth of the value's leading digit's place: 0.0001 -> 0.00001, 32.0 -> 1."""
    return 0.1 if value == 0 else 10.0 ** (math.floor(math.log10(abs(value))) - 1)
