"""Token losses and figures against numbers worked by hand, and against finite differences."""

import math

import pytest
import torch
from torch import Tensor

from trainer.choices import Guard
from trainer.engine.losses import (
    LossConfig,
    LossFunction,
    is_clip_binding,
    token_losses,
    truncated_weight,
)
from trainer.engine.metrics import figure_sums, pass_metrics, turn_figures
from trainer.engine.types import Datum, ModelInput, TensorData
from trainer.errors import BadDataError, ConfigError

DEFAULTS = LossConfig()


def losses(
    name: LossFunction,
    ratios: list[float],
    advantages: list[float],
    *,
    config: LossConfig = DEFAULTS,
    off_policy: bool = False,
) -> Tensor:
    logprobs_T = torch.tensor(ratios, dtype=torch.float64).log() - 1.5
    return token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=torch.full_like(logprobs_T, -1.5),
        advantages_T=torch.tensor(advantages, dtype=torch.float64),
        is_trained_T=torch.ones(len(ratios), dtype=torch.bool),
        is_off_policy_T=torch.full((len(ratios),), off_policy),
        config=config,
    )


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 0.5, -0.5),  # on policy: minus the advantage
        (1.5, 0.5, -0.6),  # good and already likelier: clipped at 1.2
        (0.5, 0.5, -0.25),  # good and rarer: the full pull back
        (1.5, -0.5, 0.75),  # bad and likelier: the full push down
        (0.5, -0.5, 0.4),  # bad and already rarer: clipped at 0.8
        (0.5, 0.0, 0.0),
    ],
)
def test_ppo_takes_the_pessimistic_of_clipped_and_unclipped(ratio, advantage, expected):
    assert losses("ppo", [ratio], [advantage]).item() == pytest.approx(expected, abs=1e-12)


def test_ppo_uses_the_bounds_it_is_given():
    config = LossConfig(clip_low=0.9, clip_high=1.05)
    found = losses("ppo", [2.0, 0.1], [1.0, -1.0], config=config)
    assert found.tolist() == pytest.approx([-1.05, 0.9])


def test_importance_sampling_never_clips():
    found = losses("importance_sampling", [3.0, 0.1], [1.0, -2.0])
    assert found.tolist() == pytest.approx([-3.0, 0.2])


def test_cross_entropy_is_the_negative_logprob_whatever_the_advantage():
    found = losses("cross_entropy", [1.0, math.e], [5.0, -5.0])
    assert found.tolist() == pytest.approx([1.5, 0.5])


@pytest.mark.parametrize("name", ["ppo", "importance_sampling", "cross_entropy"])
def test_untrained_positions_cost_nothing_and_leak_no_nan(name):
    logprobs_T = torch.tensor([-1.0, float("nan"), -2.0], requires_grad=True)
    found_T = token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=torch.tensor([-1.0, float("inf"), -2.0]),
        advantages_T=torch.tensor([1.0, 1.0, 1.0]),
        is_trained_T=torch.tensor([True, False, True]),
        is_off_policy_T=torch.zeros(3, dtype=torch.bool),
        config=DEFAULTS,
    )
    assert found_T[1].item() == 0.0
    found_T.sum().backward()
    assert logprobs_T.grad is not None
    assert logprobs_T.grad[1].item() == 0.0
    assert logprobs_T.grad.isfinite().all()


def test_an_enormous_log_ratio_stays_finite():
    found_T = token_losses(
        "importance_sampling",
        logprobs_T=torch.tensor([0.0]),
        old_logprobs_T=torch.tensor([-1000.0]),
        advantages_T=torch.tensor([1.0]),
        is_trained_T=torch.tensor([True]),
        is_off_policy_T=torch.tensor([False]),
        config=DEFAULTS,
    )
    assert found_T.item() == pytest.approx(-math.exp(20.0))


@pytest.mark.parametrize("name", ["ppo", "importance_sampling", "cross_entropy"])
@pytest.mark.parametrize("truncate", [False, True])
def test_gradient_equals_finite_differences(name, truncate):
    """Ratios on both sides of both bounds, so that the clip binds for some tokens."""
    log_ratios_T = torch.tensor([0.3, 0.79, 0.9, 1.1, 1.21, 2.5] * 2, dtype=torch.float64).log()
    advantages_T = torch.tensor([0.7] * 6 + [-0.7] * 6, dtype=torch.float64)
    old_T = torch.linspace(-3, -0.1, 12, dtype=torch.float64)
    logprobs_T = (old_T + log_ratios_T).requires_grad_()
    is_off_policy_T = torch.arange(12) % 2 == 0
    weight = truncated_weight(log_ratios_T, is_off_policy_T)

    def total(values_T: Tensor, *, guard_is_constant: bool) -> Tensor:
        found_T = token_losses(
            name,
            logprobs_T=values_T,
            old_logprobs_T=old_T,
            advantages_T=advantages_T,
            is_trained_T=torch.ones(12, dtype=torch.bool),
            is_off_policy_T=is_off_policy_T,
            config=LossConfig(
                guard=Guard.TRUNCATE if truncate and not guard_is_constant else Guard.NONE
            ),
        )
        if truncate and guard_is_constant and name != "cross_entropy":
            # The guard's weight is no function of the policy to the gradient.
            found_T = torch.where(is_off_policy_T & (advantages_T < 0), found_T * weight, found_T)
        return found_T.sum()

    total(logprobs_T, guard_is_constant=False).backward()
    assert logprobs_T.grad is not None
    step = 1e-6
    for position in range(12):
        shift_T = torch.zeros(12, dtype=torch.float64)
        shift_T[position] = step
        above = total(logprobs_T.detach() + shift_T, guard_is_constant=True)
        below = total(logprobs_T.detach() - shift_T, guard_is_constant=True)
        slope = (above - below).item() / (2 * step)
        assert logprobs_T.grad[position].item() == pytest.approx(slope, abs=1e-6)


def test_the_guard_weakens_only_low_scored_off_policy_replies():
    config = LossConfig(guard=Guard.TRUNCATE)
    plain = losses("ppo", [0.9, 0.9], [-1.0, -1.0])
    assert losses("ppo", [0.9, 0.9], [-1.0, -1.0], config=config).equal(plain)
    guarded = losses("ppo", [0.9, 0.9], [-1.0, -1.0], config=config, off_policy=True)
    assert guarded.tolist() == pytest.approx([0.81, 0.81])
    high_scored = losses("ppo", [0.9, 0.9], [1.0, 1.0], config=config, off_policy=True)
    assert high_scored.tolist() == pytest.approx([-0.9, -0.9])


def test_the_guards_weight_is_the_truncated_geometric_mean_ratio():
    log_ratios_T = torch.tensor([0.25, 0.16, 100.0]).log()
    is_guarded_T = torch.tensor([True, True, False])
    assert truncated_weight(log_ratios_T, is_guarded_T).item() == pytest.approx(0.2)
    assert truncated_weight(-log_ratios_T, is_guarded_T).item() == 1.0
    assert truncated_weight(log_ratios_T, torch.zeros(3, dtype=torch.bool)).item() == 1.0


def test_the_clip_binds_exactly_where_ppo_has_no_gradient():
    ratios_T = torch.tensor([0.5, 0.5, 1.0, 1.0, 1.5, 1.5], dtype=torch.float64)
    advantages_T = torch.tensor([1.0, -1.0] * 3, dtype=torch.float64)
    logprobs_T = ratios_T.log().requires_grad_()
    token_losses(
        "ppo",
        logprobs_T=logprobs_T,
        old_logprobs_T=torch.zeros(6, dtype=torch.float64),
        advantages_T=advantages_T,
        is_trained_T=torch.ones(6, dtype=torch.bool),
        is_off_policy_T=torch.zeros(6, dtype=torch.bool),
        config=DEFAULTS,
    ).sum().backward()
    assert logprobs_T.grad is not None
    sampled_T = torch.zeros(6, dtype=torch.bool)
    binds_T = is_clip_binding("ppo", ratios_T, advantages_T, sampled_T, DEFAULTS)
    assert binds_T.equal(logprobs_T.grad == 0)


def datum(advantage: float = 0.05, **changes: list[float]) -> Datum:
    inputs = {
        "target_tokens": [1, 2, 3, 4],
        "weights": [0.0, 1.0, 1.0, 1.0],
        "advantages": [0.0, advantage, advantage, advantage],
        "logprobs": [0.0, -0.5, -0.5, -0.5],
    }
    return Datum(ModelInput.from_ints([5, 1, 2, 3]), {**inputs, **changes})  # pyright: ignore[reportArgumentType]


LOGPROBS = TensorData.from_list([0.0, -0.5, -0.5 + math.log(1.5), -0.5 + math.log(0.5)], "float32")
"""Ratios 1, 1.5 and 0.5 on the three trained tokens."""


def test_turn_figures_are_those_worked_by_hand():
    figures = turn_figures("ppo", datum(), LOGPROBS, DEFAULTS)
    assert figures.tokens == 3
    assert figures.loss_sum == pytest.approx(-0.05 * (1 + 1.2 + 0.5), rel=1e-6)
    assert figures.loss_mean == pytest.approx(figures.loss_sum / 3)
    assert figures.ratio_mean == pytest.approx(1.0)
    assert figures.clipfrac == pytest.approx(2 / 3)
    assert figures.clipfrac_binding == pytest.approx(1 / 3)
    expected_kl = (0 + (0.5 - math.log(1.5)) + (-0.5 - math.log(0.5))) / 3
    assert figures.kl_mean == pytest.approx(expected_kl, rel=1e-5)
    assert figures.logprob_mean == pytest.approx((-1.5 + math.log(0.75)) / 3, rel=1e-6)


def test_scaling_the_weights_scales_the_gradient_and_no_figure():
    scaled = datum(weights=[0.0, 0.1, 0.1, 0.1])
    assert turn_figures("ppo", scaled, LOGPROBS, DEFAULTS) == turn_figures(
        "ppo", datum(), LOGPROBS, DEFAULTS
    )
    plain = pass_metrics("ppo", [figure_sums("ppo", datum(), LOGPROBS, DEFAULTS)])
    small = pass_metrics("ppo", [figure_sums("ppo", scaled, LOGPROBS, DEFAULTS)])
    assert small["loss:mean"] == pytest.approx(plain["loss:mean"])
    assert small["loss:sum"] == pytest.approx(0.1 * plain["loss:sum"])


def test_a_pass_weighs_tokens_alike_however_they_are_split_into_datums():
    long, short = datum(), datum(weights=[0.0, 0.0, 0.0, 1.0])
    sums = [figure_sums("ppo", each, LOGPROBS, DEFAULTS) for each in (long, short)]
    metrics = pass_metrics("ppo", sums)
    assert metrics["num_tokens:sum"] == 4
    assert metrics["ratio:mean"] == pytest.approx((1 + 1.5 + 0.5 + 0.5) / 4)
    assert metrics["clipfrac:mean"] == pytest.approx(3 / 4)


def test_missing_weights_mean_1_where_the_advantage_is_not_0():
    inputs = {key: data for key, data in datum().loss_fn_inputs.items() if key != "weights"}
    without = Datum(datum().model_input, inputs)
    assert turn_figures("ppo", without, LOGPROBS, DEFAULTS) == turn_figures(
        "ppo", datum(), LOGPROBS, DEFAULTS
    )


def test_a_datum_without_old_logprobs_is_refused_by_ppo():
    bare = Datum(ModelInput.from_ints([5, 1]), {"target_tokens": [1, 2]})  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadDataError, match="advantages"):
        turn_figures("ppo", bare, TensorData.from_list([0, 0], "float32"), DEFAULTS)


def test_unknown_losses_and_settings_are_refused_by_name():
    with pytest.raises(ConfigError, match="'dpo'"):
        turn_figures("dpo", datum(), LOGPROBS, DEFAULTS)
    with pytest.raises(ConfigError, match="clip_lower"):
        LossConfig.parse({"clip_lower": 0.8})
    assert LossConfig.parse({"clip_low_threshold": 0.7}) == LossConfig(clip_low=0.7)
