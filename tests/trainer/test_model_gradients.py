"""The gradient that the engine hands to the optimiser, held against differences of the loss.

The losses are written out here once more, in plain numbers from the engine's own logprobs: what is
checked is the way from a weight of the adapter through the prefix tree to the loss and back.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from tests.oracle import OracleTurn
from tests.subject import Subject, dialogue, load_subject, rendered_turns
from trainer.choices import Guard, Rendering
from trainer.engine.losses import LossConfig, LossFunction

LOW, HIGH = 0.8, 1.2
STEP = 4e-3
"""Length of a step in weight space: far above fp32 rounding, far below the loss's curvature."""

TokenLoss = Callable[[float, float, float], float]


def _ppo(logprob: float, old: float, advantage: float) -> float:
    ratio = math.exp(logprob - old)
    return -min(ratio * advantage, min(max(ratio, LOW), HIGH) * advantage)


def _importance_sampling(logprob: float, old: float, advantage: float) -> float:
    return -math.exp(logprob - old) * advantage


def _cross_entropy(logprob: float, old: float, advantage: float) -> float:
    return -logprob


LOSSES: dict[LossFunction, TokenLoss] = {
    "ppo": _ppo,
    "importance_sampling": _importance_sampling,
    "cross_entropy": _cross_entropy,
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """At this size a second thread costs more than it gives."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def subject(tiny_qwen3: Path, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """A tiny model whose template rewrites history, so that the tree has branches."""
    return load_subject(tiny_qwen3, tmp_path_factory.mktemp("subject"))


@pytest.fixture(scope="module")
def turns(subject: Subject) -> list[OracleTurn]:
    """Turns whose ratios lie on both sides of the clip bounds, with both signs of advantage."""
    conversations = [dialogue(4, seed=1), dialogue(2, seed=2)]
    return rendered_turns(subject, conversations, Rendering.TEMPLATE)


def _weights(turns: Sequence[OracleTurn], logprobs: Sequence[torch.Tensor]) -> list[float]:
    """The guard's weight of each turn: 1, or the geometric mean ratio of a bad reply below 1."""
    weights = []
    for turn, scored in zip(turns, logprobs, strict=True):
        distance = sum(scored.tolist()) - sum(turn.old_logprobs)
        rarity = min(1.0, math.exp(distance / len(turn.old_logprobs)))
        weights.append(rarity if turn.advantage < 0 else 1.0)
    return weights


def _total(
    subject: Subject, turns: Sequence[OracleTurn], loss: TokenLoss, weights: Sequence[float]
) -> float:
    """The weighted sum of all token losses under the adapter as it is."""
    scored = subject.response_logprobs(turns, subject.pass_over(turns, backward=False))
    return math.fsum(
        weight * loss(logprob, old, turn.advantage)
        for turn, logprobs, weight in zip(turns, scored, weights, strict=True)
        for logprob, old in zip(logprobs.tolist(), turn.old_logprobs, strict=True)
    )


def _measured_slope(
    subject: Subject,
    direction: dict[str, torch.Tensor],
    total: Callable[[], float],
) -> float:
    """The central difference of `total` along a direction of length 1 in weight space."""
    parameters = subject.policy.trainable()
    heights = []
    for sign in (1, -1):
        with torch.no_grad():
            for name, change in direction.items():
                parameters[name].add_(change, alpha=sign * STEP)
        heights.append(total())
        with torch.no_grad():
            for name, change in direction.items():
                parameters[name].sub_(change, alpha=sign * STEP)
    return (heights[0] - heights[1]) / (2 * STEP)


@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_parameter_has_the_slope_that_differences_measure(
    subject: Subject, turns: list[OracleTurn], loss: LossFunction, guarded: bool
) -> None:
    guard = Guard.TRUNCATE if guarded else Guard.NONE
    result = subject.pass_over(turns, loss=loss, config=LossConfig(guard=guard), off_policy=True)
    weights = [1.0] * len(turns)
    if guarded and loss != "cross_entropy":
        weights = _weights(turns, subject.response_logprobs(turns, result))
        assert min(weights) < 1.0
    assert len(result.gradients) == len(subject.policy.trainable())
    for name, gradient in result.gradients.items():
        length = float(gradient.norm())
        measured = _measured_slope(
            subject,
            {name: gradient / length},
            lambda: _total(subject, turns, LOSSES[loss], weights),
        )
        assert measured == pytest.approx(length, rel=1e-2, abs=1e-2), name


@pytest.mark.parametrize("sign", [1, -1])
def test_a_turn_that_is_clipped_throughout_has_no_gradient_at_all(
    subject: Subject, turns: list[OracleTurn], sign: int
) -> None:
    plain = subject.pass_over(turns, backward=False)
    beyond = math.log(HIGH) + 0.1 if sign > 0 else math.log(LOW) - 0.1
    clipped = [
        OracleTurn(
            turn.prompt_ids,
            turn.response_ids,
            sign * 1.5,
            tuple(value - beyond for value in logprobs.tolist()),
        )
        for turn, logprobs in zip(turns, subject.response_logprobs(turns, plain), strict=True)
    ]
    result = subject.pass_over(clipped)
    assert all(not gradient.any() for gradient in result.gradients.values())
    # The same ratios with the other sign of advantage are not clipped.
    against = [
        OracleTurn(turn.prompt_ids, turn.response_ids, -turn.advantage, turn.old_logprobs)
        for turn in clipped
    ]
    assert all(gradient.any() for gradient in subject.pass_over(against).gradients.values())
