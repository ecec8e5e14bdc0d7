"""Everything that decides what a run does: one frozen, typed, serialisable object.

Each field carries its own help, unit and limits, so that the command line, the launch page and
the validation say the same. Presets are factories; nothing here imports torch.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, get_type_hints

from trainer.errors import ConfigError, shortened

EMBEDDED_MODEL = "smollm2-135m"

MANY = 10**300
"""Whole numbers from here on do not fit into a float."""


class Preset(StrEnum):
    """The two starting points that a person chooses between."""

    RECIPE = "recipe"
    STANDARD = "standard"


class Rendering(StrEnum):
    """How a conversation becomes token ids."""

    PLAIN = "plain"
    TEMPLATE = "template"


class CreditMode(StrEnum):
    """How per-turn rewards become per-turn advantages."""

    RECIPE = "recipe"
    IMMEDIATE = "immediate"
    RETURN_TO_GO = "return_to_go"
    OUTCOME = "outcome"


class LossName(StrEnum):
    """The training objective."""

    PPO = "ppo"
    IMPORTANCE_SAMPLING = "importance_sampling"
    CROSS_ENTROPY = "cross_entropy"


class OldLogprobs(StrEnum):
    """Where the behaviour policy's log-probabilities come from."""

    CONSTANT = "constant"
    STORED_OR_RECOMPUTED = "stored_or_recomputed"


class LossScale(StrEnum):
    """What the gradient of a step is the gradient of."""

    SUM = "sum"
    TRAINED_TOKENS = "trained_tokens"


class Guard(StrEnum):
    """What protects the model from replies that no known policy sampled."""

    NONE = "none"
    TRUNCATE = "truncate"


class Device(StrEnum):
    """Where a run computes."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The closed range of a numeric field; `exclusive` leaves the lower end out."""

    low: float
    high: float
    exclusive: bool = False

    def allow(self, value: float) -> bool:
        """Return whether `value` is finite and within the range."""
        above = value > self.low if self.exclusive else value >= self.low
        return above and value <= self.high  # NaN is neither

    def __str__(self) -> str:
        """Return the range in words."""
        start = "more than" if self.exclusive else "at least"
        return f"{start} {self.low:g} and at most {self.high:g}"


def setting(
    default: Any, label: str, help: str, *, unit: str = "", limits: Limits | None = None
) -> Any:
    """Declare a field of `TrainConfig` together with what people need to know about it."""
    metadata = {"label": label, "help": help, "unit": unit, "limits": limits}
    return dataclasses.field(default=default, metadata=metadata)


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
    device: Device = setting(
        Device.AUTO, "Device", "auto takes the first CUDA device, or the CPU where there is none."
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
        "space, as in the seed recipe.",
    )
    max_context_tokens: int = setting(
        1024,
        "Context limit",
        "Longest model input of a turn. Longer turns are named and left out of training.",
        unit="tokens",
        limits=Limits(low=8, high=131072),
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
    guard: Guard = setting(
        Guard.TRUNCATE,
        "Off-policy guard",
        "truncate: a low-scored reply that no known policy sampled is pushed down less the "
        "rarer it has already become, so that the model stays fluent.",
    )
    old_logprobs: OldLogprobs = setting(
        OldLogprobs.STORED_OR_RECOMPUTED,
        "Old log-probabilities",
        "constant: -0.5 for every token, as in the seed recipe. stored_or_recomputed: those of "
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
        0.5,
        "KL limit",
        "The run ends early, keeping its adapter, once a step's mean KL to the old policy "
        "passes this; 0 switches the limit off.",
        unit="nats/token",
        limits=Limits(low=0, high=100),
    )

    token_budget: int = setting(
        2048,
        "Tokens a pass",
        "Most distinct tokens that go through the model at once. Lower it if memory runs out.",
        unit="tokens",
        limits=Limits(low=16, high=1048576),
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
            value = _coerce(field.name, getattr(self, field.name), types[field.name])
            limits: Limits | None = field.metadata["limits"]
            if limits is not None and not limits.allow(value):
                raise ConfigError(
                    f"{_shown(value)} is out of range",
                    where=f"setting {field.name}",
                    remedy=f"It must be {limits}.",
                )
            object.__setattr__(self, field.name, value)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON data; `from_json` is its inverse."""
        return {
            name: value.value if isinstance(value, StrEnum) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a configuration from JSON data.

        Raises:
            ConfigError: if a key is unknown or a value does not fit.
        """
        return cls(**_known(data))

    @classmethod
    def for_preset(cls, preset: Preset, **overrides: Any) -> Self:
        """Return a preset with some of its settings replaced."""
        base = RECIPE_SETTINGS if preset is Preset.RECIPE else {}
        return cls.from_json({**base, "preset": preset, **overrides})

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed."""
        return dataclasses.replace(self, **_known(changes))


RECIPE_SETTINGS: dict[str, Any] = {
    "rendering": Rendering.PLAIN,
    "credit": CreditMode.RECIPE,
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
"""What the seed recipe does differently from `standard`."""

RECIPE_OLD_LOGPROB = -0.5
"""The constant that the seed recipe takes for every old log-probability, in nats."""


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Parse the `key=value` arguments of `--set` into typed settings.

    Raises:
        ConfigError: if an argument has no `=`, or names no setting, or its value does not parse.
    """
    types = get_type_hints(TrainConfig)
    parsed: dict[str, Any] = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator:
            raise ConfigError(
                f"{_shown(assignment)} is not of the form key=value",
                where="--set",
                remedy="For example: --set learning_rate=5e-5",
            )
        _known({key: text})
        if key == "preset":
            raise ConfigError("the preset is no setting", where="--set", remedy="Use --preset.")
        parsed[key] = _parse(key, text, types[key])
    return parsed


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - from a file
        raise ConfigError("the configuration is no JSON object", where="configuration")
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    for key in data:
        if key not in names:
            raise ConfigError(
                f"there is no setting named {_shown(key)}",
                where="configuration",
                remedy=f"The settings are: {', '.join(names)}.",
            )
    return dict(data)


def _parse(name: str, text: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(
            f"{_shown(text)} is not {_describe(kind)}", where=f"setting {name}"
        ) from None


def _coerce(name: str, value: Any, kind: type[Any]) -> Any:
    """Return `value` as `kind`, allowing an int for a float and a string for an enum."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < MANY else math.inf
    if issubclass(kind, StrEnum) and isinstance(value, str):
        return _parse(name, value, kind)
    if type(value) is not kind:
        raise ConfigError(f"{_shown(value)} is not {_describe(kind)}", where=f"setting {name}")
    return value


def _shown(value: object) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # more digits than Python prints
        return "this number"


def _describe(kind: type[Any]) -> str:
    if issubclass(kind, StrEnum):
        return "one of " + ", ".join(kind)
    names: dict[type, str] = {int: "a whole number", float: "a number", str: "text"}
    return names[kind]
