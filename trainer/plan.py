"""Which turns go through the model when: epochs, optimiser steps, passes. Decided before it starts.

The whole plan follows from data, configuration and seed, so a resumed run does what the
interrupted one would have done.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.config import TrainConfig
from trainer.data.turns import TrainableTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimiser step.

    Attributes:
        index: Number of the step, from 0, over all epochs.
        epoch: Epoch it belongs to, from 0.
        passes: Groups of positions in the list of trainable turns; each group holds whole
            conversations and goes through the model together.
    """

    index: int
    epoch: int
    passes: tuple[tuple[int, ...], ...]

    @property
    def turns(self) -> tuple[int, ...]:
        """The positions of all turns of the step."""
        return tuple(position for group in self.passes for position in group)


def make_plan(turns: Sequence[TrainableTurn], config: TrainConfig) -> list[Step]:
    """Return the steps of a run.

    The recipe (`batch_conversations` 0) takes one step an epoch with the conversations in their
    order; otherwise each epoch shuffles them, seeded by the run's seed and the epoch.
    """
    conversations: dict[int, list[int]] = {}
    for position, turn in enumerate(turns):
        conversations.setdefault(turn.conversation, []).append(position)
    plan: list[Step] = []
    for epoch in range(config.epochs):
        order = list(conversations.values())
        if config.batch_conversations:
            random.Random(f"{config.seed}/{epoch}").shuffle(order)
        size = config.batch_conversations or len(order)
        for start in range(0, len(order), size):
            passes = group_by_budget(order[start : start + size], turns, config.token_budget)
            plan.append(Step(index=len(plan), epoch=epoch, passes=passes))
    return plan


def group_by_budget(
    conversations: Sequence[Sequence[int]], turns: Sequence[TrainableTurn], token_budget: int
) -> tuple[tuple[int, ...], ...]:
    """Put neighbouring conversations together while their longest turns stay within the budget.

    The longest turn of a conversation holds most of the earlier ones as its prefix, so its length
    is close to what the conversation costs.
    """
    groups: list[list[int]] = []
    room = 0
    for positions in conversations:
        cost = max(turns[position].rendered.tokens for position in positions)
        if not groups or cost > room:
            groups.append([])
            room = token_budget
        groups[-1].extend(positions)
        room -= cost
    return tuple(tuple(group) for group in groups)


def learning_rate(config: TrainConfig, step: int) -> float:
    """Return the rate for a step (from 0): a linear rise over the warm-up, then constant."""
    if step >= config.warmup_steps:
        return config.learning_rate
    return config.learning_rate * (step + 1) / (config.warmup_steps + 1)
