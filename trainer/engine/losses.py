"""Token losses of a policy gradient step: tensors in, tensors out.

With logprob the log-probability of a token under the policy being trained and old_logprob that
under the policy that sampled it, the probability ratio is ρ = exp(logprob - old_logprob). Axis T
runs over the positions of one datum's model input.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trainer.errors import ConfigError

LossFunction = Literal["ppo", "importance_sampling", "cross_entropy"]
LOSS_FUNCTIONS: tuple[LossFunction, ...] = ("ppo", "importance_sampling", "cross_entropy")

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this many nats, so that exp() stays finite (as verl does)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossConfig:
    """What the losses can be told.

    Attributes:
        clip_low: Lower bound of the probability ratio in `ppo`.
        clip_high: Upper bound of the probability ratio in `ppo`.
        truncate_off_policy: Whether low-scored off-policy replies are pushed down less the
            rarer they have become; see `off_policy_weight`.
    """

    clip_low: float = 0.8
    clip_high: float = 1.2
    truncate_off_policy: bool = False

    @classmethod
    def parse(cls, config: "LossConfig | Mapping[str, float] | None") -> "LossConfig":
        """Read a Tinker-style `loss_fn_config`.

        Args:
            config: Keys `clip_low_threshold`, `clip_high_threshold` and `truncate_off_policy`
                (0 or 1), each optional; None means the defaults.

        Raises:
            ConfigError: if a key is unknown.
        """
        if isinstance(config, LossConfig):
            return config
        given, default = dict(config or {}), cls()
        parsed = cls(
            clip_low=given.pop("clip_low_threshold", default.clip_low),
            clip_high=given.pop("clip_high_threshold", default.clip_high),
            truncate_off_policy=bool(given.pop("truncate_off_policy", False)),
        )
        if given:
            raise ConfigError(
                f"unknown keys {sorted(given)}",
                where="loss_fn_config",
                remedy="Use clip_low_threshold, clip_high_threshold, truncate_off_policy.",
            )
        return parsed


def loss_function(name: str) -> LossFunction:
    """Return the loss of that name.

    Raises:
        ConfigError: if there is none.
    """
    for known in LOSS_FUNCTIONS:
        if name == known:
            return known
    raise ConfigError(
        f"there is no loss {name!r}", where="loss_fn", remedy=f"Use {', '.join(LOSS_FUNCTIONS)}."
    )


def token_losses(
    name: LossFunction,
    *,
    logprobs_T: Tensor,
    old_logprobs_T: Tensor,
    advantages_T: Tensor,
    is_trained_T: Tensor,
    is_off_policy_T: Tensor,
    config: LossConfig,
) -> Tensor:
    """Return the loss of each token, 0 where the token is not trained.

    Args:
        name: One of `LOSS_FUNCTIONS`.
        logprobs_T: Float, natural logarithm, under the policy being trained; carries gradient.
        old_logprobs_T: Float, natural logarithm, under the behaviour policy.
        advantages_T: Float.
        is_trained_T: Bool, True where the token is part of a reply that is trained on.
        is_off_policy_T: Bool, True where no known policy sampled the token.
        config: Clip bounds and guard.

    Returns:
        Float tensor of shape (T,).
    """
    if name == "cross_entropy":
        return torch.where(is_trained_T, -logprobs_T, torch.zeros_like(logprobs_T))
    log_ratios_T = log_ratios(logprobs_T, old_logprobs_T, is_trained_T)
    ratios_T = log_ratios_T.exp()
    if name == "ppo":
        losses_T = ppo(ratios_T, advantages_T, config.clip_low, config.clip_high)
    else:
        losses_T = importance_sampling(ratios_T, advantages_T)
    if config.truncate_off_policy:
        is_guarded_T = is_trained_T & is_off_policy_T
        weight = off_policy_weight(log_ratios_T.detach(), is_guarded_T)
        losses_T = torch.where(is_guarded_T & (advantages_T < 0), losses_T * weight, losses_T)
    return torch.where(is_trained_T, losses_T, torch.zeros_like(losses_T))


def log_ratios(logprobs_T: Tensor, old_logprobs_T: Tensor, is_trained_T: Tensor) -> Tensor:
    """Return log ρ, clamped to ± `LOG_RATIO_LIMIT`, and 0 where the token is not trained."""
    difference_T = logprobs_T - old_logprobs_T
    # Masked before the clamp: NaN or Inf of an untrained position must not reach a gradient.
    trained_T = torch.where(is_trained_T, difference_T, torch.zeros_like(difference_T))
    return trained_T.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def ppo(ratios_T: Tensor, advantages_T: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """Return -min(ρA, clip(ρ, low, high)·A) (Schulman et al. 2017, arXiv 1707.06347, eq. 7)."""
    clipped_T = ratios_T.clamp(clip_low, clip_high)
    return -torch.minimum(ratios_T * advantages_T, clipped_T * advantages_T)


def importance_sampling(ratios_T: Tensor, advantages_T: Tensor) -> Tensor:
    """Return -ρA, whose gradient is that of the policy gradient theorem under off-policy data."""
    return -ratios_T * advantages_T


def off_policy_weight(log_ratios_T: Tensor, is_guarded_T: Tensor) -> Tensor:
    """Return w = min(1, exp(mean of log ρ over the guarded tokens)), a scalar in (0, 1].

    Pushing a fixed reply down has no natural end: its log-probability sinks towards -∞ and takes
    the model's fluency with it. TOPR (Le Roux et al. 2025, arXiv 2503.14286, section 3) therefore
    weights negative examples by their importance ratio truncated to [0, 1], and leaves positive
    ones alone. Its ratio is that of the whole reply, which for a hundred tokens is 0 or 1 in
    practice; the geometric mean over tokens (GSPO, arXiv 2507.18071, eq. 7) says the same on a
    scale that does not depend on length. The old policy here is the model before the iteration,
    since the one that wrote the reply is unknown.

    Args:
        log_ratios_T: log ρ without gradient.
        is_guarded_T: Bool, True where the token belongs to a reply that no known policy sampled.

    Returns:
        A scalar tensor; 1 if no token is guarded.
    """
    count = is_guarded_T.sum().clamp(min=1)
    total = torch.where(is_guarded_T, log_ratios_T, torch.zeros_like(log_ratios_T)).sum()
    return (total / count).exp().clamp(max=1.0)


def is_clip_binding(
    ratios_T: Tensor, advantages_T: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """Return True where the clip of `ppo` removes the token's gradient."""
    too_high_T = (advantages_T > 0) & (ratios_T > clip_high)
    too_low_T = (advantages_T < 0) & (ratios_T < clip_low)
    return too_high_T | too_low_T


def is_outside_band(ratios_T: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """Return True where ρ lies outside [low, high], whatever the advantage."""
    return (ratios_T < clip_low) | (ratios_T > clip_high)
