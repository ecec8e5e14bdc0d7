"""The named starting points of a configuration, as what they change of its defaults."""

from typing import Any

from trainer.choices import CreditMode, Guard, LossScale, OldLogprobs, Preset, Rendering

RECIPE_OLD_LOGPROB = -0.5
"""The constant that the published recipe takes for every old log-probability, in nats."""

RECIPE_SETTINGS: dict[str, Any] = {
    "rendering": Rendering.PLAIN,
    "credit": CreditMode.RECIPE,
    "dual_clip": 0.0,
    "guard": Guard.NONE,
    "old_logprobs": OldLogprobs.CONSTANT,
    "loss_scale": LossScale.SUM,
    "epochs": 2,
    "batch_conversations": 0,
    "learning_rate": 1e-4,
    "warmup_steps": 0,
    "adam_eps": 1e-12,
    "weight_decay": 0.0,
    "grad_clip_norm": 0.0,
    "max_kl": 0.0,
}
"""What the published recipe does differently from `standard`."""


def preset_settings(preset: object) -> dict[str, Any]:
    """Return what a preset, given by its name, does differently from `standard`."""
    return RECIPE_SETTINGS if preset == Preset.RECIPE else {}
