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


def _learn(mode: CreditMode, gamma: float, seed: int) -> float:
    """Return P(invest) of a tabular softmax policy after plain policy gradient."""
    rng = random.Random(seed)
    preference = [0.0] * STATES  # logit of action 1 against action 0
    for _ in range(ITERATIONS):
        good = [1 / (1 + math.exp(-value)) for value in preference]
        played = [_play(good, rng) for _ in range(CONVERSATIONS)]
        credits = assign_credit(
            [
                ConversationRewards(
                    turns=tuple(rewards),
                    outcome=sum(rewards) if mode is CreditMode.OUTCOME else None,
                )
                for _, rewards in played
            ],
            mode=mode,
            gamma=gamma,
            outcome_weight=1.0,
        )
        slope = [0.0] * STATES
        for (steps, _), turns in zip(played, credits, strict=True):
            for (state, action), credit in zip(steps, turns, strict=True):
                assert credit.advantage is not None
                slope[state] += credit.advantage * (float(action) - good[state])
        for state in range(STATES):
            preference[state] += STEP * slope[state] / CONVERSATIONS
    return 1 / (1 + math.exp(-preference[START]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_return_to_go_learns_to_invest(gamma: float, seed: int) -> None:
    assert _learn(CreditMode.RETURN_TO_GO, gamma, seed) > 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_return_to_go_prefers_greed_where_the_discount_makes_it_right(seed: int) -> None:
    assert _learn(CreditMode.RETURN_TO_GO, 0.4, seed) < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_outcome_learns_to_invest(seed: int) -> None:
    assert _learn(CreditMode.OUTCOME, 0.9, seed) > 0.95


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", [CreditMode.RECIPE, CreditMode.IMMEDIATE])
def test_credit_for_the_moment_only_stays_greedy(mode: CreditMode, seed: int) -> None:
    assert _learn(mode, 0.9, seed) < 0.05
