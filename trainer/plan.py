"""Which turns go through the model when: epochs, optimiser steps, passes. Decided before it starts.

The whole plan follows from data, configuration and seed, so a resumed run does what the
interrupted one would have done.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.choices import Schedule
from trainer.config import TrainConfig
from trainer.data.turns import TrainableTurn

LAST_SHARE = 0.1
"""Share of the learning rate that a cosine schedule ends at: the last step still teaches."""


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


def make_plan(turns: Sequence[TrainableTurn], config: TrainConfig, *, ranks: int = 1) -> list[Step]:
    """Return the steps of a run.

    The recipe (`batch_conversations` 0) takes one step an epoch with the conversations in their
    order; otherwise each epoch shuffles them, seeded by the run's seed and the epoch. With several
    ranks a pass has work for all of them; the steps stay the same.
    """
    token_budget = config.token_budget * ranks
    conversations = by_conversation(turns)
    plan: list[Step] = []
    for epoch in range(config.epochs):
        order = list(conversations)
        if config.batch_conversations:
            random.Random(f"{config.seed}/{epoch}").shuffle(order)
        size = config.batch_conversations or len(order)
        for start in range(0, len(order), size):
            passes = group_by_budget(order[start : start + size], turns, token_budget)
            plan.append(Step(index=len(plan), epoch=epoch, passes=passes))
    return plan


def by_conversation(turns: Sequence[TrainableTurn]) -> list[list[int]]:
    """Return the positions of each conversation's turns, in the data's order."""
    conversations: dict[int, list[int]] = {}
    for position, turn in enumerate(turns):
        conversations.setdefault(turn.conversation, []).append(position)
    return list(conversations.values())


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


def learning_rate(config: TrainConfig, step: int, steps: int) -> float:
    """Return the rate for a step.

    It rises linearly over the warm-up. Then it stays, or sinks along half a cosine (SGDR without
    restarts; Loshchilov and Hutter 2017, arXiv 1608.03983, eq. 5), from the full rate in the first
    step after the warm-up to `LAST_SHARE` of it in the last planned step.

    Args:
        config: The run's settings.
        step: The step, from 0.
        steps: How many the run has planned.
    """
    warmup = config.warmup_steps
    if step < warmup:
        return config.learning_rate * (step + 1) / (warmup + 1)
    if config.schedule is Schedule.CONSTANT:
        return config.learning_rate
    done = (step - warmup) / max(1, steps - 1 - warmup)
    height = (1 + math.cos(math.pi * done)) / 2
    return config.learning_rate * (LAST_SHARE + (1 - LAST_SHARE) * height)
