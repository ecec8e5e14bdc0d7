"""What the losses can be told, as a typed object and under the names of the Tinker API."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trainer.choices import Guard
from trainer.errors import ConfigError

SYMMETRIC_CLIP_KEYS = ("epsilon", "clip_ratio")
"""What MinT calls a clip band from 1 - ε to 1 + ε; Tinker names its two ends."""

GUARD_KEYS = {
    Guard.TRUNCATE: "truncate_off_policy",
    Guard.POSITIVE_ONLY: "positive_only_off_policy",
    Guard.EXP_WEIGHTED: "exp_weighted_off_policy",
}
"""The key of each guard in a `loss_fn_config`, whose values are all numbers: 1 switches it on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig:
    """What the losses can be told.

    Attributes:
        clip_low: Lower bound of the probability ratio in `ppo` and `cispo`.
        clip_high: Upper bound of the probability ratio in `ppo` and `cispo`.
        dual_clip: Ratio from which a negative advantage pushes no further in `ppo`; 0: none.
        guard: What is done about replies that no known policy sampled.
        guard_beta: Temperature of the guard `exp_weighted`, in units of the advantage.
        guard_cap: Largest weight that `exp_weighted` gives.
        kl_weight: Factor on the penalty for moving away from the reference policy.
        dro_beta: How strongly `dro` holds on to the policy that sampled.
    """

    clip_low: float = 0.8
    clip_high: float = 1.2
    dual_clip: float = 0.0
    guard: Guard = Guard.NONE
    guard_beta: float = 0.5
    guard_cap: float = 20.0
    kl_weight: float = 0.0
    dro_beta: float = 0.05

    @classmethod
    def parse(cls, config: "LossConfig | Mapping[str, float] | None") -> "LossConfig":
        """Read a Tinker-style `loss_fn_config`; `to_numbers` is the inverse.

        Args:
            config: Any of the keys that `to_numbers` gives, and `epsilon` or `clip_ratio` (ε) for
                a clip band of 1 ± ε; None means the defaults.

        Raises:
            ConfigError: if a key is unknown or given in two spellings, a value is no number or
                too small, the clip bounds are not in order, or two guards are switched on.
        """
        if isinstance(config, LossConfig):
            return config
        if config is not None and not isinstance(config, Mapping):
            raise ConfigError(
                f"it is a {type(config).__name__}",
                where="loss_fn_config",
                remedy="Give numbers by name, for example {'clip_low_threshold': 0.8}.",
            )
        given, default = _with_clip_bounds(_numbers(config or {})), cls()
        guards = [guard for guard, key in GUARD_KEYS.items() if given.pop(key, 0)]
        if len(guards) > 1:
            raise ConfigError(
                f"{' and '.join(GUARD_KEYS[guard] for guard in guards)} exclude each other",
                where="loss_fn_config",
                remedy="Switch only one of them on.",
            )
        parsed = cls(
            clip_low=given.pop("clip_low_threshold", default.clip_low),
            clip_high=given.pop("clip_high_threshold", default.clip_high),
            dual_clip=given.pop("dual_clip_threshold", default.dual_clip),
            guard=guards[0] if guards else Guard.NONE,
            guard_beta=given.pop("exp_weight_beta", default.guard_beta),
            guard_cap=given.pop("exp_weight_cap", default.guard_cap),
            kl_weight=given.pop("kl_weight", default.kl_weight),
            dro_beta=given.pop("beta", default.dro_beta),
        )
        if given:
            raise ConfigError(
                f"unknown keys {sorted(given)}",
                where="loss_fn_config",
                remedy=f"Use {', '.join(default.to_numbers())}.",
            )
        if not 0 <= parsed.clip_low <= parsed.clip_high:
            raise ConfigError(
                f"the clip bounds {parsed.clip_low:g} and {parsed.clip_high:g} are not in order",
                where="loss_fn_config",
                remedy="Bound the ratio from 0 upwards, for example by 0.8 and 1.2.",
            )
        for key, value, least in (
            ("dual_clip_threshold", parsed.dual_clip or 1, 1),
            ("exp_weight_beta", parsed.guard_beta, 1e-6),
            ("exp_weight_cap", parsed.guard_cap, 1e-6),
            ("kl_weight", parsed.kl_weight, 0),
            ("beta", parsed.dro_beta, 0),
        ):
            if value < least:
                raise ConfigError(
                    f"{key} is {value:g}",
                    where="loss_fn_config",
                    remedy=f"Give {least:g} or more.",
                )
        return parsed

    def to_numbers(self) -> dict[str, float]:
        """Return the settings as a Tinker-style `loss_fn_config`."""
        return {
            "clip_low_threshold": self.clip_low,
            "clip_high_threshold": self.clip_high,
            "dual_clip_threshold": self.dual_clip,
            **{key: float(guard is self.guard) for guard, key in GUARD_KEYS.items()},
            "exp_weight_beta": self.guard_beta,
            "exp_weight_cap": self.guard_cap,
            "kl_weight": self.kl_weight,
            "beta": self.dro_beta,
        }


def _numbers(config: Mapping[str, float]) -> dict[str, float]:
    """Return the settings as floats."""
    numbers: dict[str, float] = {}
    for key, value in config.items():
        try:
            numbers[key] = float(value)
        except (TypeError, ValueError, OverflowError):
            numbers[key] = math.nan
        if not math.isfinite(numbers[key]):
            raise ConfigError(
                f"{key} is {value!r}, which is no number",
                where="loss_fn_config",
                remedy="Give a finite number.",
            )
    return numbers


def _with_clip_bounds(config: dict[str, float]) -> dict[str, float]:
    """Return the settings with ε, if it is given, as the two ends of its band."""
    spellings = [key for key in SYMMETRIC_CLIP_KEYS if key in config]
    if not spellings:
        return config
    bounds = ("clip_low_threshold", "clip_high_threshold")
    if len(spellings) > 1 or any(key in config for key in bounds):
        raise ConfigError(
            f"{spellings[0]} and another key both say where to clip",
            where="loss_fn_config",
            remedy=f"Give either {spellings[0]} or {' and '.join(bounds)}.",
        )
    rest = {key: value for key, value in config.items() if key not in spellings}
    epsilon = config[spellings[0]]
    return rest | {bounds[0]: 1 - epsilon, bounds[1]: 1 + epsilon}
