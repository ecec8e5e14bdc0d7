"""The losses' gradients, held against finite differences and against the formulas on paper."""

import math

import pytest
import torch
from torch import Tensor

from trainer.choices import Guard
from trainer.engine.losses import LossConfig, LossFunction, token_losses

LOG_RATIOS = [-1.5, -0.3, -0.2, -0.05, 0.0, 0.05, 0.15, 0.3, 1.5]
OLD = [-0.5, -3.0, -0.01, -1.0, -2.0, -0.7, -4.0, -1.2, -2.2]
T = len(LOG_RATIOS)
LOW, HIGH = 0.8, 1.2
ADVANTAGES = [0.7, -0.7, 2.0, -0.05]


def _double(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _logprobs() -> Tensor:
    """New log-probabilities whose ratios lie inside, outside and far outside the clip band."""
    logprobs = _double(OLD) + _double(LOG_RATIOS)
    return logprobs.requires_grad_()


def _losses(
    name: LossFunction,
    logprobs_T: Tensor,
    advantage: float,
    *,
    is_off_policy: bool = False,
    config: LossConfig | None = None,
) -> Tensor:
    return token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=_double(OLD),
        advantages_T=torch.full((T,), advantage, dtype=torch.float64),
        is_trained_T=torch.ones(T, dtype=torch.bool),
        is_off_policy_T=torch.full((T,), is_off_policy),
        config=config or LossConfig(clip_low=LOW, clip_high=HIGH),
    )


def _slopes(losses_T: Tensor, logprobs_T: Tensor) -> list[float]:
    (gradient,) = torch.autograd.grad(losses_T.sum(), logprobs_T)
    return gradient.tolist()


def _binds(log_ratio: float, advantage: float) -> bool:
    ratio = math.exp(log_ratio)
    return (advantage > 0 and ratio > HIGH) or (advantage < 0 and ratio < LOW)


@pytest.mark.parametrize("name", ["ppo", "importance_sampling", "cross_entropy"])
@pytest.mark.parametrize("advantage", ADVANTAGES)
def test_gradient_equals_finite_differences(name: LossFunction, advantage: float) -> None:
    logprobs = _logprobs()
    assert torch.autograd.gradcheck(
        lambda x: _losses(name, x, advantage), (logprobs,), eps=1e-6, atol=1e-8, rtol=1e-6
    )


@pytest.mark.parametrize("advantage", ADVANTAGES)
def test_ppo_has_no_gradient_exactly_where_the_clip_binds(advantage: float) -> None:
    logprobs = _logprobs()
    slopes = _slopes(_losses("ppo", logprobs, advantage), logprobs)
    bound = [_binds(log_ratio, advantage) for log_ratio in LOG_RATIOS]
    assert any(bound) and not all(bound)
    for slope, log_ratio, binds in zip(slopes, LOG_RATIOS, bound, strict=True):
        if binds:
            assert slope == 0.0
        else:
            assert slope == pytest.approx(-math.exp(log_ratio) * advantage, rel=1e-12)


@pytest.mark.parametrize("advantage", ADVANTAGES)
def test_importance_sampling_never_clips(advantage: float) -> None:
    logprobs = _logprobs()
    losses = _losses("importance_sampling", logprobs, advantage)
    expected = [-math.exp(log_ratio) * advantage for log_ratio in LOG_RATIOS]
    assert losses.tolist() == pytest.approx(expected, rel=1e-12)
    assert _slopes(losses, logprobs) == pytest.approx(expected, rel=1e-12)


def test_cross_entropy_ignores_advantages() -> None:
    logprobs = _logprobs()
    losses = _losses("cross_entropy", logprobs, -5.0)
    assert losses.tolist() == [-value for value in logprobs.tolist()]
    assert _slopes(losses, logprobs) == [-1.0] * T


GUARDED = LossConfig(clip_low=LOW, clip_high=HIGH, guard=Guard.TRUNCATE)


@pytest.mark.parametrize("name", ["ppo", "importance_sampling"])
@pytest.mark.parametrize("shift", [-1.0, 0.5])
def test_guard_pushes_an_unsampled_bad_reply_down_less_the_rarer_it_is(
    name: LossFunction, shift: float
) -> None:
    logprobs = (_logprobs().detach() + shift).requires_grad_()
    mean_log_ratio = sum(LOG_RATIOS) / T + shift
    weight = min(1.0, math.exp(mean_log_ratio))
    assert (weight < 1.0) == (shift < 0)  # one case truncates, in the other the guard is at rest

    guarded = _losses(name, logprobs, -0.7, is_off_policy=True, config=GUARDED)
    plain = _losses(name, logprobs, -0.7)
    assert guarded.tolist() == pytest.approx((weight * plain).tolist(), rel=1e-12)
    # The weight is no path for the gradient: the slope is the plain one, scaled.
    expected = [weight * slope for slope in _slopes(plain, logprobs)]
    assert _slopes(guarded, logprobs) == pytest.approx(expected, rel=1e-12)
    # Finite differences agree once the weight is held where it was.
    assert torch.autograd.gradcheck(
        lambda x: weight * _losses(name, x, -0.7), (logprobs,), eps=1e-6, atol=1e-8, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("advantage", "is_off_policy"), [(0.7, True), (-0.7, False)], ids=["good", "sampled"]
)
def test_guard_leaves_good_and_sampled_replies_alone(advantage: float, is_off_policy: bool) -> None:
    logprobs = _logprobs()
    guarded = _losses("ppo", logprobs, advantage, is_off_policy=is_off_policy, config=GUARDED)
    plain = _losses("ppo", logprobs, advantage)
    assert guarded.tolist() == plain.tolist()
    assert _slopes(guarded, logprobs) == _slopes(plain, logprobs)


@pytest.mark.parametrize("name", ["ppo", "importance_sampling", "cross_entropy"])
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_a_position_that_is_not_trained_leaks_nothing(name: LossFunction, poison: float) -> None:
    logprobs_T = _double([-1.0, poison, -2.0]).requires_grad_()
    losses_T = token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=_double([-1.1, 0.0, -1.9]),
        advantages_T=_double([1.0, 1.0, -1.0]),
        is_trained_T=torch.tensor([True, False, True]),
        is_off_policy_T=torch.tensor([True, True, True]),
        config=GUARDED,
    )
    slopes = _slopes(losses_T, logprobs_T)
    assert losses_T[1] == 0.0 and slopes[1] == 0.0
    assert all(math.isfinite(value) for value in [*losses_T.tolist(), *slopes])
    assert slopes[0] != 0.0 and slopes[2] != 0.0


@pytest.mark.parametrize("name", ["ppo", "importance_sampling"])
@pytest.mark.parametrize("log_ratio", [500.0, -500.0])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_absurd_ratios_stay_finite(name: LossFunction, log_ratio: float, advantage: float) -> None:
    logprobs_T = _double([-1.0 + log_ratio]).requires_grad_()
    losses_T = token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=_double([-1.0]),
        advantages_T=_double([advantage]),
        is_trained_T=torch.tensor([True]),
        is_off_policy_T=torch.tensor([True]),
        config=GUARDED,
    )
    assert torch.isfinite(losses_T).all()
    assert all(math.isfinite(slope) for slope in _slopes(losses_T, logprobs_T))
