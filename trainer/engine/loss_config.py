"""What the losses can be told, as a typed object and under the names of the Tinker API."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.choices import Guard
from trainer.errors import ConfigError

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
        clip_low: Lower bound of the probability ratio in `ppo`.
        clip_high: Upper bound of the probability ratio in `ppo`.
        dual_clip: Ratio from which a negative advantage pushes no further in `ppo`; 0: none.
        guard: What is done about replies that no known policy sampled.
        guard_beta: Temperature of the guard `exp_weighted`, in units of the advantage.
        guard_cap: Largest weight that `exp_weighted` gives.
        kl_weight: Factor on the penalty for moving away from the reference policy.
    """

    clip_low: float = 0.8
    clip_high: float = 1.2
    dual_clip: float = 0.0
    guard: Guard = Guard.NONE
    guard_beta: float = 0.5
    guard_cap: float = 20.0
    kl_weight: float = 0.0

    @classmethod
    def parse(cls, config: "LossConfig | Mapping[str, float] | None") -> "LossConfig":
        """Read a Tinker-style `loss_fn_config`; `to_numbers` is the inverse.

        Args:
            config: Any of the keys that `to_numbers` gives; None means the defaults.

        Raises:
            ConfigError: if a key is unknown, or two guards are switched on.
        """
        if isinstance(config, LossConfig):
            return config
        given, default = dict(config or {}), cls()
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
        )
        if given:
            raise ConfigError(
                f"unknown keys {sorted(given)}",
                where="loss_fn_config",
                remedy=f"Use {', '.join(default.to_numbers())}.",
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
        }
