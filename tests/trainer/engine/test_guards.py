"""Guards, dual clip and KL penalty against numbers worked by hand."""

import math

import pytest
import torch

from trainer.choices import Guard
from trainer.engine.losses import (
    LossConfig,
    LossFunction,
    imitation_weights,
    is_clip_binding,
    kl_penalty,
    token_losses,
)
from trainer.engine.metrics import figure_sums, turn_figures
from trainer.engine.types import Datum, ModelInput, TensorData
from trainer.errors import BadDataError, ConfigError

OLD = -1.5


def losses_and_slopes(
    config: LossConfig,
    ratios: list[float],
    advantages: list[float],
    *,
    name: LossFunction = "ppo",
    off_policy: bool = True,
    reference: list[float] | None = None,
) -> tuple[list[float], list[float]]:
    """Return each token's loss and its derivative by the token's log-probability."""
    logprobs_T = torch.tensor(ratios, dtype=torch.float64).log() + OLD
    logprobs_T.requires_grad_()
    losses_T = token_losses(
        name,
        logprobs_T=logprobs_T,
        old_logprobs_T=torch.full_like(logprobs_T, OLD),
        advantages_T=torch.tensor(advantages, dtype=torch.float64),
        is_trained_T=torch.ones(len(ratios), dtype=torch.bool),
        is_off_policy_T=torch.full((len(ratios),), off_policy),
        config=config,
        reference_logprobs_T=None if reference is None else torch.tensor(reference).double(),
    )
    losses_T.sum().backward()
    assert logprobs_T.grad is not None
    return losses_T.tolist(), logprobs_T.grad.tolist()


def test_positive_only_silences_low_scored_unsampled_replies_and_nothing_else() -> None:
    config = LossConfig(guard=Guard.POSITIVE_ONLY)
    losses, slopes = losses_and_slopes(config, [1.1, 1.1, 0.5], [-1.0, 1.0, -1.0])
    assert losses == pytest.approx([0.0, -1.1, 0.0])
    assert slopes == pytest.approx([0.0, -1.1, 0.0])
    _, sampled = losses_and_slopes(config, [1.1], [-1.0], off_policy=False)
    assert sampled == pytest.approx([1.1])


def test_exp_weighted_imitates_each_reply_with_the_exponential_of_its_advantage() -> None:
    config = LossConfig(guard=Guard.EXP_WEIGHTED, guard_beta=0.5, guard_cap=20.0)
    losses, slopes = losses_and_slopes(config, [1.0, 1.0, 3.0], [0.5, -0.5, 10.0])
    # exp(1) and exp(-1) times 1.5 nats; exp(20) is capped, and log-probability is -1.5 + ln 3.
    expected = [math.e * 1.5, 1.5 / math.e, 20 * (1.5 - math.log(3))]
    assert losses == pytest.approx(expected)
    assert slopes == pytest.approx([-math.e, -1 / math.e, -20.0])  # whatever the ratio


def test_exp_weighted_leaves_sampled_replies_to_the_loss() -> None:
    config = LossConfig(guard=Guard.EXP_WEIGHTED)
    plain = losses_and_slopes(LossConfig(), [0.9], [-1.0], off_policy=False)
    assert losses_and_slopes(config, [0.9], [-1.0], off_policy=False) == plain


def test_weights_of_extreme_advantages_stay_within_zero_and_the_cap() -> None:
    config = LossConfig(guard=Guard.EXP_WEIGHTED, guard_beta=0.01, guard_cap=7.0)
    assert imitation_weights(torch.tensor([1e6, -1e6]), config).tolist() == pytest.approx([7.0, 0])


@pytest.mark.parametrize("guard", [Guard.POSITIVE_ONLY, Guard.EXP_WEIGHTED])
def test_cross_entropy_knows_no_guard(guard: Guard) -> None:
    config = LossConfig(guard=guard)
    losses, _ = losses_and_slopes(config, [1.0], [-1.0], name="cross_entropy")
    assert losses == pytest.approx([1.5])


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (2.9, -0.5, 1.45, 1.45),  # below c: the full push down
        (4.0, -0.5, 1.5, 0.0),  # above it: the loss rests at c·|A|
        (0.5, -0.5, 0.4, 0.0),  # the ordinary clip still binds
        (4.0, 0.5, -0.6, 0.0),  # a positive advantage never meets the second bound
    ],
)
def test_dual_clip_bounds_the_push_on_low_scored_tokens(
    ratio: float, advantage: float, loss: float, slope: float
) -> None:
    found = losses_and_slopes(LossConfig(dual_clip=3.0), [ratio], [advantage])
    assert found[0] == pytest.approx([loss])
    assert found[1] == pytest.approx([slope])


def test_a_token_stopped_by_the_dual_clip_counts_as_clipped() -> None:
    def binding(config: LossConfig, name: LossFunction = "ppo") -> list[bool]:
        return is_clip_binding(
            name,
            torch.tensor([4.0, 4.0, 0.5, 0.5, 4.0]),
            torch.tensor([-1.0, 1.0, -1.0, -1.0, -1.0]),
            torch.tensor([False, False, False, True, True]),
            config,
        ).tolist()

    assert binding(LossConfig()) == [False, True, True, True, False]
    assert binding(LossConfig(dual_clip=3.0)) == [True, True, True, True, True]
    # Under these guards an unsampled low-scored reply meets no clip: the guard was there first.
    for guard in (Guard.POSITIVE_ONLY, Guard.EXP_WEIGHTED):
        config = LossConfig(dual_clip=3.0, guard=guard)
        assert binding(config) == [True, True, True, False, False]
    assert not any(binding(LossConfig(dual_clip=3.0), "importance_sampling"))


def test_the_kl_penalty_is_k3_and_pulls_towards_the_reference() -> None:
    log_ratios_T = torch.tensor([0.0, math.log(2), -math.log(2)], dtype=torch.float64)
    expected = [0.0, 0.5 - 1 + math.log(2), 2 - 1 - math.log(2)]
    assert kl_penalty(log_ratios_T).tolist() == pytest.approx(expected)
    # With advantage 0 only the penalty is left: 0.1 x (1 - 1/2) above, 0.1 x (1 - 2) below.
    config = LossConfig(kl_weight=0.1)
    reference = [OLD, OLD, OLD]
    losses, slopes = losses_and_slopes(config, [1, 2, 0.5], [0.0] * 3, reference=reference)
    assert losses == pytest.approx([0.1 * value for value in expected])
    assert slopes == pytest.approx([0.0, 0.05, -0.1])


@pytest.mark.parametrize("name", ["ppo", "importance_sampling", "cross_entropy"])
def test_the_kl_penalty_joins_every_loss_under_every_guard(name: LossFunction) -> None:
    for guard in Guard:
        plain = losses_and_slopes(LossConfig(guard=guard), [2.0], [-1.0], name=name)
        config = LossConfig(guard=guard, kl_weight=0.2)
        with_kl = losses_and_slopes(config, [2.0], [-1.0], name=name, reference=[OLD])
        assert with_kl[0][0] - plain[0][0] == pytest.approx(0.2 * (math.log(2) - 0.5), rel=1e-6)
        assert with_kl[1][0] - plain[1][0] == pytest.approx(0.2 * 0.5, rel=1e-6)


def test_a_kl_penalty_without_reference_is_refused() -> None:
    with pytest.raises(BadDataError, match="reference_logprobs"):
        losses_and_slopes(LossConfig(kl_weight=0.1), [1.0], [1.0])


def datum(**more: list[float]) -> Datum:
    inputs = {
        "target_tokens": [1, 2, 3],
        "weights": [0.0, 1.0, 1.0],
        "advantages": [0.0, 0.5, 0.5],
        "logprobs": [0.0, -0.5, -0.5],
    }
    return Datum(ModelInput.from_ints([5, 1, 2]), {**inputs, **more})  # pyright: ignore[reportArgumentType]


LOGPROBS = TensorData.from_list([0.0, -1.0, -2.0], "float32")


def test_kl_to_the_base_is_measured_where_its_logprobs_are_known() -> None:
    based = datum(reference_logprobs=[0.0, -1.0, -2.0 - math.log(2)])
    figures = turn_figures("ppo", based, LOGPROBS, LossConfig())
    assert figures.kl_base == pytest.approx((0 + (2 - 1 - math.log(2))) / 2)
    assert turn_figures("ppo", datum(), LOGPROBS, LossConfig()).kl_base is None
    sums = [figure_sums("ppo", each, LOGPROBS, LossConfig()) for each in (based, datum())]
    assert (sums[0] + sums[1]).figures().kl_base == pytest.approx(figures.kl_base)


@pytest.mark.parametrize("guard", list(Guard))
def test_numbers_give_the_settings_back(guard: Guard) -> None:
    config = LossConfig(dual_clip=3.0, guard=guard, guard_beta=0.3, guard_cap=9.0, kl_weight=0.1)
    numbers = config.to_numbers()
    assert all(isinstance(value, float) for value in numbers.values())
    assert LossConfig.parse(numbers) == config


def test_two_guards_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="truncate_off_policy and positive_only_off_policy"):
        LossConfig.parse({"truncate_off_policy": 1, "positive_only_off_policy": 1})
