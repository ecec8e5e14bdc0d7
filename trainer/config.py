"""Everything that decides what a run does: one frozen, typed, serialisable object.

Each field carries its own help, unit and limits, so that the command line, the launch page and
the validation say the same. Presets are factories; nothing here imports torch.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, get_type_hints

from db.enums import Aggregation
from trainer.choices import (
    BasePrecision,
    CreditMode,
    Device,
    Guard,
    LossName,
    LossScale,
    OldLogprobs,
    Preset,
    Rendering,
    Schedule,
)
from trainer.errors import ConfigError
from trainer.fields import Limits, checked_value, known_settings, setting
from trainer.presets import preset_settings

EMBEDDED_MODEL = "smollm2-135m"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """The full configuration of a run. The defaults are the `standard` preset.

    Raises:
        ConfigError: on construction, if a value has the wrong type or is out of range.
    """

    preset: Preset = setting(
        Preset.STANDARD, "Method", "The named starting point these settings came from."
    )
    base_model: str = setting(
        EMBEDDED_MODEL, "Base model", "Name of a listed model, a hub id, or a local folder."
    )
    start_from: str = setting(
        "",
        "Start from",
        "Number of a run, or a folder, whose adapter the run goes on from; empty starts from the base "
        "model. Its base model, rank, alpha and layers must be this run's.",
    )
    endpoint: str = setting(
        "",
        "Where",
        "Name of an endpoint under Settings that computes the run; empty computes it on this machine.",
    )
    device: Device = setting(
        Device.AUTO, "Device", "auto takes the first CUDA device, or the CPU where there is none."
    )
    base_precision: BasePrecision = setting(
        BasePrecision.AUTO,
        "Base weights",
        "How the frozen base model is held. auto: fp32 on a CPU, bf16 on CUDA. 4bit: a quarter of "
        "bf16's memory for a little accuracy, on CUDA only.",
    )
    seed: int = setting(
        0,
        "Seed",
        "Fixes the adapter's initial weights and the order of conversations.",
        limits=Limits(low=0, high=2**31 - 1),
    )

    rendering: Rendering = setting(
        Rendering.TEMPLATE,
        "Rendering",
        "template: each turn as the model's chat template shows it. plain: texts joined by a "
        "space, as in the published recipe.",
    )
    max_context_tokens: int = setting(
        1024,
        "Context limit",
        "Longest model input of a turn. Longer turns are named and left out of training.",
        unit="tokens",
        limits=Limits(low=8, high=131072),
    )

    selection: str = setting(
        "",
        "Conversations",
        "In words, how the conversations were chosen on the launch page. It changes nothing: what was "
        "chosen is copied into the run's folder.",
    )
    aggregation: Aggregation = setting(
        Aggregation.ADJUDICATED,
        "Scores of several people",
        "Which number a turn gets that several people scored. adjudicated: the score that was "
        "decided for it, else the mean. mean, median: of all its scores. one_rater: that of one "
        "person; what they did not score has none.",
    )
    rater: str = setting(
        "", "Rater", "Whose scores count under one_rater; without effect otherwise."
    )
    credit: CreditMode = setting(
        CreditMode.RETURN_TO_GO,
        "Credit",
        "How a turn's advantage comes from the scores. return_to_go credits a turn with "
        "everything that follows it; recipe compares it with its own conversation's mean.",
    )
    gamma: float = setting(
        0.9,
        "Discount γ",
        "How much a turn is credited with the turns after it: 0 not at all, 1 in full.",
        limits=Limits(low=0, high=1),
    )
    outcome_weight: float = setting(
        1.0,
        "Outcome weight",
        "How much the score of the whole conversation counts beside the turn scores.",
        limits=Limits(low=0, high=10),
    )

    loss: LossName = setting(LossName.PPO, "Loss", "The training objective.")
    clip_low: float = setting(
        0.8,
        "Lower clip bound",
        "Probability ratio below which a token stops being pushed down.",
        limits=Limits(low=0, high=1),
    )
    clip_high: float = setting(
        1.2,
        "Upper clip bound",
        "Probability ratio above which a token stops being pushed up.",
        limits=Limits(low=1, high=10),
    )
    dual_clip: float = setting(
        3.0,
        "Dual clip",
        "Probability ratio above which a low-scored token stops being pushed down: it would pull "
        "without bound. 0 switches it off.",
        limits=Limits(low=1, high=100, exclusive=True, or_zero=True),
    )
    guard: Guard = setting(
        Guard.TRUNCATE,
        "Off-policy guard",
        "For replies that no known policy sampled. truncate: a low-scored one is pushed down less "
        "the rarer it has already become. positive_only: a low-scored one teaches nothing. "
        "exp_weighted: each is imitated, the more the better its score. none: like any other.",
    )
    guard_beta: float = setting(
        0.5,
        "Guard temperature β",
        "exp_weighted imitates a reply with weight exp(advantage / β): smaller cares more for the "
        "best replies.",
        limits=Limits(low=0.01, high=100),
    )
    guard_cap: float = setting(
        20.0,
        "Guard weight cap",
        "Largest weight of a reply under exp_weighted.",
        limits=Limits(low=1, high=1000),
    )
    kl_weight: float = setting(
        0.0,
        "KL weight",
        "Strength of a penalty on moving away from the base model, added to each reply token's "
        "loss; 0 switches it off.",
        limits=Limits(low=0, high=10),
    )
    old_logprobs: OldLogprobs = setting(
        OldLogprobs.STORED_OR_RECOMPUTED,
        "Old log-probabilities",
        "constant: -0.5 for every token, as in the published recipe. stored_or_recomputed: those of "
        "the policy that sampled the reply, else of the model as the run starts.",
    )
    loss_scale: LossScale = setting(
        LossScale.TRAINED_TOKENS,
        "Loss scale",
        "sum: the step's gradient is that of the sum of token losses. trained_tokens: that sum "
        "divided by the number of tokens, so that batch size does not change the step.",
    )

    lora_rank: int = setting(
        16,
        "LoRA rank",
        "Size of the adapter: more can learn more and needs more memory.",
        limits=Limits(low=1, high=256),
    )
    lora_alpha: float = setting(
        32.0,
        "LoRA alpha",
        "Strength of the adapter; its output is scaled by alpha / rank.",
        limits=Limits(low=0, high=1024, exclusive=True),
    )

    epochs: int = setting(
        3, "Epochs", "How often the run goes through the data.", limits=Limits(low=1, high=100)
    )
    batch_conversations: int = setting(
        4,
        "Conversations a step",
        "Optimiser steps are taken after this many conversations; 0 means once per epoch.",
        unit="conversations",
        limits=Limits(low=0, high=4096),
    )
    learning_rate: float = setting(
        2e-4,
        "Learning rate",
        "Size of an optimiser step.",
        limits=Limits(low=0, high=1, exclusive=True),
    )
    warmup_steps: int = setting(
        2,
        "Warm-up",
        "The learning rate rises linearly over the first steps.",
        unit="steps",
        limits=Limits(low=0, high=100000),
    )
    schedule: Schedule = setting(
        Schedule.CONSTANT,
        "Rate schedule",
        "After the warm-up the learning rate stays (constant), or sinks along half a cosine to a "
        "tenth in the last step (cosine).",
    )
    adam_beta1: float = setting(
        0.9, "Adam β1", "Memory of the gradient's mean.", limits=Limits(low=0, high=0.9999)
    )
    adam_beta2: float = setting(
        0.95, "Adam β2", "Memory of the gradient's square.", limits=Limits(low=0, high=0.99999)
    )
    adam_eps: float = setting(
        1e-8,
        "Adam ε",
        "Keeps the step finite where gradients vanish.",
        limits=Limits(low=0, high=1, exclusive=True),
    )
    weight_decay: float = setting(
        0.01, "Weight decay", "Pulls the adapter towards 0.", limits=Limits(low=0, high=1)
    )
    grad_clip_norm: float = setting(
        1.0,
        "Gradient clip",
        "Largest L2 norm of a step's gradient; 0 switches clipping off.",
        limits=Limits(low=0, high=1000),
    )
    max_kl: float = setting(
        2.0,
        "KL limit",
        "The run ends early, keeping its adapter, once a step's mean KL passes this: to the old "
        "policy or to the base model, whichever is larger. 0 switches the limit off.",
        unit="nats/token",
        limits=Limits(low=0, high=100),
    )

    held_out: float = setting(
        0.0,
        "Held out",
        "Share of the conversations that is not trained on, but judges each epoch: the best "
        "epoch's adapter is kept. 0 holds none out: a few dozen conversations can spare none.",
        limits=Limits(low=0, high=0.5),
    )

    token_budget: int = setting(
        2048,
        "Tokens a pass",
        "Most distinct tokens that go through the model at once. Lower it if memory runs out.",
        unit="tokens",
        limits=Limits(low=16, high=1048576),
    )
    memory_limit_gb: float = setting(
        0.0,
        "Memory limit",
        "What a pass may take beside the model. For a longer one, layers are computed again in the "
        "backward pass: up to a third slower, for a tenth of the memory. 0: four fifths of what is "
        "free once the model is loaded.",
        unit="GB",
        limits=Limits(low=0, high=4096),
    )
    sample_prompts: int = setting(
        3,
        "Sample prompts",
        "How many openings from the data are answered before and after training.",
        limits=Limits(low=0, high=32),
    )
    sample_tokens: int = setting(
        64,
        "Sample length",
        "Most tokens of each such answer.",
        unit="tokens",
        limits=Limits(low=1, high=2048),
    )

    def __post_init__(self) -> None:
        """Check every field's type and range."""
        types = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = checked_value(field, getattr(self, field.name), types[field.name])
            object.__setattr__(self, field.name, value)
        if self.aggregation is Aggregation.ONE_RATER and not self.rater.strip():
            raise ConfigError(
                "it is not said whose scores count",
                where="setting rater",
                remedy="Name the rater, or choose another way to put scores together.",
            )

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON data; `from_json` is its inverse."""
        return {
            name: value.value if isinstance(value, StrEnum) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a configuration from JSON data; what it leaves out is as its preset has it.

        Raises:
            ConfigError: if a key is unknown or a value does not fit.
        """
        given = known_settings(cls, data)
        return cls(**{**preset_settings(given.get("preset")), **given})

    @classmethod
    def for_preset(cls, preset: Preset, **overrides: Any) -> Self:
        """Return a preset with some of its settings replaced."""
        return cls.from_json({"preset": preset, **overrides})

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed."""
        return dataclasses.replace(self, **known_settings(type(self), changes))
