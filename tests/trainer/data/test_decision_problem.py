"""A three-turn problem with a known optimum: which credit learns to give now and reap later?

Two actions a turn. In the first turn *greedy* pays 0.6 and leads to the poor branch, *invest* pays
nothing and leads to the rich one. Then the good action pays 0.1 a turn in the poor branch and 0.7
in the rich one, the other action nothing. Investing is worth 1.4 in all, greed 0.8; discounted,
investing is better where γ + γ² > 1, that is from γ = 0.618 on.
"""

import math
import random

import pytest

from trainer.config import CreditMode
from trainer.data.credit import ConversationRewards, assign_credit

SEEDS = (0, 1, 2)
ITERATIONS = 400
CONVERSATIONS = 32
STEP = 0.5

START, POOR_2, POOR_3, RICH_2, RICH_3 = range(5)
STATES = 5
GREEDY_PAY, POOR_PAY, RICH_PAY = 0.6, 0.1, 0.7


def _play(good: list[float], rng: random.Random) -> tuple[list[tuple[int, bool]], list[float]]:
    """Play one conversation; return its (state, took action 1) steps and its rewards.

    `good[state]` is the probability of action 1, which in the first turn means to invest.
    """
    invests = rng.random() < good[START]
    steps, rewards = [(START, invests)], [0.0 if invests else GREEDY_PAY]
    pay = RICH_PAY if invests else POOR_PAY
    for state in (RICH_2, RICH_3) if invests else (POOR_2, POOR_3):
        takes_pay = rng.random() < good[state]
        steps.append((state, takes_pay))
        rewards.append(pay if takes_pay else 0.0)
    return steps, rewards


def _probabilities(logits: list[list[float]]) -> list[float]:
    """Return the softmax probability of action 1 in each state."""
    return [1 / (1 + math.exp(first - second)) for first, second in logits]


def _learn(mode: CreditMode, gamma: float, seed: int) -> float:
    """Return P(invest) of a tabular softmax policy after plain policy gradient."""
    rng = random.Random(seed)
    logits = [[0.0, 0.0] for _ in range(STATES)]  # one for each action
    for _ in range(ITERATIONS):
        good = _probabilities(logits)
        played = [_play(good, rng) for _ in range(CONVERSATIONS)]
        credits = assign_credit(
            [ConversationRewards(turns=tuple(rewards)) for _, rewards in played],
            mode=mode,
            gamma=gamma,
            outcome_weight=1.0,
        )
        slope = [0.0] * STATES
        for (steps, _), turns in zip(played, credits, strict=True):
            for (state, action), credit in zip(steps, turns, strict=True):
                assert credit.advantage is not None
                slope[state] += credit.advantage * (float(action) - good[state])
        for state, pair in enumerate(logits):
            change = STEP * slope[state] / CONVERSATIONS
            pair[0] -= change
            pair[1] += change
    return _probabilities(logits)[START]


def _investing(mode: CreditMode, gamma: float) -> float:
    """Return P(invest), the mean over seeds that must agree with each other."""
    learned = [_learn(mode, gamma, seed) for seed in SEEDS]
    assert max(learned) - min(learned) < 0.01
    return sum(learned) / len(learned)


def test_return_to_go_learns_to_invest() -> None:
    assert _investing(CreditMode.RETURN_TO_GO, 0.9) == pytest.approx(0.994, abs=0.002)
    assert _investing(CreditMode.RETURN_TO_GO, 1.0) == pytest.approx(0.996, abs=0.002)


def test_return_to_go_prefers_greed_where_the_discount_makes_it_right() -> None:
    assert _investing(CreditMode.RETURN_TO_GO, 0.4) == pytest.approx(0.008, abs=0.002)


def test_the_whole_conversation_as_outcome_learns_to_invest() -> None:
    assert _investing(CreditMode.OUTCOME, 0.9) == pytest.approx(0.996, abs=0.002)


@pytest.mark.parametrize("mode", [CreditMode.RECIPE, CreditMode.IMMEDIATE])
def test_credit_for_the_moment_alone_stays_greedy(mode: CreditMode) -> None:
    assert _investing(mode, 0.9) == pytest.approx(0.004, abs=0.002)
