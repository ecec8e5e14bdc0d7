"""Token losses of a policy gradient step: tensors in, tensors out.

With logprob the log-probability of a token under the policy being trained and old_logprob that
under the policy that sampled it, the probability ratio is ρ = exp(logprob - old_logprob). Axis T
runs over the positions of one datum's model input.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from trainer.choices import Guard
from trainer.engine.loss_config import LossConfig
from trainer.errors import BadDataError, ConfigError

LossFunction = Literal["ppo", "importance_sampling", "cross_entropy", "cispo", "dro"]
LOSS_FUNCTIONS: tuple[LossFunction, ...] = (
    "ppo",
    "importance_sampling",
    "cross_entropy",
    "cispo",
    "dro",
)

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this many nats, so that exp() stays finite (as verl does)."""


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
    reference_logprobs_T: Tensor | None = None,
) -> Tensor:
    """Return the loss of each token, 0 where the token is not trained.

    Args:
        name: One of `LOSS_FUNCTIONS`.
        logprobs_T: Float, natural logarithm, under the policy being trained; carries gradient.
        old_logprobs_T: Float, natural logarithm, under the behaviour policy.
        advantages_T: Float.
        is_trained_T: Bool, True where the token is part of a reply that is trained on.
        is_off_policy_T: Bool, True where no known policy sampled the token.
        config: Clip bounds, guard and KL weight.
        reference_logprobs_T: Float, natural logarithm, under the policy that the KL penalty holds
            on to; not needed where its weight is 0.

    Returns:
        Float tensor of shape (T,).

    Raises:
        BadDataError: if there is a KL penalty, and no reference.
    """
    if name == "cross_entropy":
        losses_T = -logprobs_T
    else:
        log_ratios_T = log_ratios(logprobs_T, old_logprobs_T, is_trained_T)
        ratios_T = log_ratios_T.exp()
        if name == "ppo":
            losses_T = ppo(ratios_T, advantages_T, config)
        elif name == "cispo":
            losses_T = cispo(logprobs_T, ratios_T, advantages_T, config)
        elif name == "dro":
            losses_T = dro(logprobs_T, log_ratios_T, advantages_T, config)
        else:
            losses_T = importance_sampling(ratios_T, advantages_T)
        is_guarded_T = is_trained_T & is_off_policy_T
        losses_T = guarded(
            losses_T, logprobs_T, log_ratios_T.detach(), advantages_T, is_guarded_T, config
        )
    if config.kl_weight:
        if reference_logprobs_T is None:
            raise BadDataError("a KL penalty needs 'reference_logprobs' in every datum")
        away_T = log_ratios(logprobs_T, reference_logprobs_T, is_trained_T)
        losses_T = losses_T + config.kl_weight * kl_penalty(away_T)
    return torch.where(is_trained_T, losses_T, torch.zeros_like(losses_T))


def log_ratios(logprobs_T: Tensor, old_logprobs_T: Tensor, is_trained_T: Tensor) -> Tensor:
    """Return log ρ, clamped to ± `LOG_RATIO_LIMIT`, and 0 where the token is not trained."""
    difference_T = logprobs_T - old_logprobs_T
    # Masked before the clamp: NaN or Inf of an untrained position must not reach a gradient.
    trained_T = torch.where(is_trained_T, difference_T, torch.zeros_like(difference_T))
    return trained_T.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def ppo(ratios_T: Tensor, advantages_T: Tensor, config: LossConfig) -> Tensor:
    """Return -min(ρA, clip(ρ, low, high)·A) (Schulman et al. 2017, arXiv 1707.06347, eq. 7).

    Where A < 0 that has no upper bound: a token that has become likelier is pushed down by ρ·|A|.
    Dual clip takes max(min(...), c·A) there (Ye et al. 2019, arXiv 1912.09729).
    """
    clipped_T = ratios_T.clamp(config.clip_low, config.clip_high)
    losses_T = -torch.minimum(ratios_T * advantages_T, clipped_T * advantages_T)
    if not config.dual_clip:
        return losses_T
    bounded_T = torch.minimum(losses_T, -config.dual_clip * advantages_T)
    return torch.where(advantages_T < 0, bounded_T, losses_T)


def importance_sampling(ratios_T: Tensor, advantages_T: Tensor) -> Tensor:
    """Return -ρA, whose gradient is that of the policy gradient theorem under off-policy data."""
    return -ratios_T * advantages_T


def cispo(logprobs_T: Tensor, ratios_T: Tensor, advantages_T: Tensor, config: LossConfig) -> Tensor:
    """Return -sg(clip(ρ, low, high))·A·log π (MiniMax 2025, arXiv 2506.13585, eq. 4).

    The clipped ratio only weighs the log-likelihood: unlike in `ppo` no token loses its gradient.
    """
    weights_T = ratios_T.detach().clamp(config.clip_low, config.clip_high)
    return -weights_T * advantages_T * logprobs_T


def dro(
    logprobs_T: Tensor, log_ratios_T: Tensor, advantages_T: Tensor, config: LossConfig
) -> Tensor:
    """Return -(A·log π - β/2·(log ρ)²) (Richemond et al. 2024, arXiv 2405.19107).

    The square holds the policy to the one that sampled, on both sides and without a ratio, so
    that data of any age can be used.
    """
    return config.dro_beta / 2 * log_ratios_T.square() - advantages_T * logprobs_T


def guarded(
    losses_T: Tensor,
    logprobs_T: Tensor,
    log_ratios_T: Tensor,
    advantages_T: Tensor,
    is_guarded_T: Tensor,
    config: LossConfig,
) -> Tensor:
    """Return the losses with those of replies that no known policy sampled put under the guard.

    `truncate` weakens the push on low-scored replies; see `truncated_weight`. `positive_only`
    takes it away: such a reply then carries no gradient (A-LoL trains on positive advantages
    only; Baheti et al. 2023, arXiv 2305.14718). `exp_weighted` imitates each reply in place of
    the clipped loss; see `imitation_weights`.

    Args:
        losses_T: The losses without a guard.
        logprobs_T: As in `token_losses`.
        log_ratios_T: log ρ without gradient.
        advantages_T: As in `token_losses`.
        is_guarded_T: Bool, True where the token belongs to a reply that no known policy sampled.
        config: The guard and its settings.
    """
    is_low_T = is_guarded_T & (advantages_T < 0)
    if config.guard is Guard.TRUNCATE:
        weight = truncated_weight(log_ratios_T, is_guarded_T)
        return torch.where(is_low_T, losses_T * weight, losses_T)
    if config.guard is Guard.POSITIVE_ONLY:
        return torch.where(is_low_T, torch.zeros_like(losses_T), losses_T)
    if config.guard is Guard.EXP_WEIGHTED:
        weights_T = imitation_weights(advantages_T, config)
        return torch.where(is_guarded_T, -weights_T * logprobs_T, losses_T)
    return losses_T


def truncated_weight(log_ratios_T: Tensor, is_guarded_T: Tensor) -> Tensor:
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


def imitation_weights(advantages_T: Tensor, config: LossConfig) -> Tensor:
    """Return w = min(exp(A / β), cap), the weight of a token in the guard `exp_weighted`.

    Advantage-weighted regression (Peng et al. 2019, arXiv 1910.00177, algorithm 1, whose authors
    cap w at 20) maximises w·log π. It is the log-likelihood that is weighted, not the ratio:
    the ratio corrects for the policy that wrote the reply, which is unknown here, and its
    gradient w·ρ·∇log π grows with what has been learned already, while that of the
    log-likelihood comes to rest at the weighted replies themselves. No weight is negative, so
    nothing is pushed towards -∞.
    """
    return (advantages_T / config.guard_beta).clamp(max=math.log(config.guard_cap)).exp()


def kl_penalty(log_ratios_T: Tensor) -> Tensor:
    """Return exp(-d) - 1 + d with d = logprob - reference logprob, of which 0 is the least.

    The k3 estimator of KL(policy || reference) in nats a token, in the form that GRPO adds to its
    loss (Shao et al. 2024, arXiv 2402.03300, eq. 4). Its gradient 1 - exp(-d) stays below 1 for a
    token that became likelier, and grows fast for one that is pushed towards -∞. The figures'
    KL estimate, (ρ - 1) - log ρ, is that of the other direction.

    Args:
        log_ratios_T: d, clamped; carries gradient.
    """
    return (-log_ratios_T).exp() - 1 + log_ratios_T


def is_clip_binding(
    name: LossFunction,
    ratios_T: Tensor,
    advantages_T: Tensor,
    is_off_policy_T: Tensor,
    config: LossConfig,
) -> Tensor:
    """Return True where a clip of `ppo`, and not the guard, removes the token's gradient."""
    if name != "ppo":
        return torch.zeros_like(is_off_policy_T)
    is_low_T = advantages_T < 0
    too_high_T = (advantages_T > 0) & (ratios_T > config.clip_high)
    too_low_T = is_low_T & (ratios_T < config.clip_low)
    is_binding_T = too_high_T | too_low_T
    if config.dual_clip:
        is_binding_T = is_binding_T | (is_low_T & (ratios_T > config.dual_clip))
    if config.guard is Guard.EXP_WEIGHTED:
        return is_binding_T & ~is_off_policy_T
    if config.guard is Guard.POSITIVE_ONLY:
        return is_binding_T & ~(is_off_policy_T & is_low_T)
    return is_binding_T


def is_outside_band(ratios_T: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """Return True where ρ lies outside [low, high], whatever the advantage."""
    return (ratios_T < clip_low) | (ratios_T > clip_high)
