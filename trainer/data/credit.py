"""Per-turn rewards become per-turn advantages: who is to be thanked for what.

`standard` credits a turn with its discounted return-to-go,

    G_t = sum over k >= t of gamma^(k - t) * r_k,

where the outcome of the whole conversation, times its weight, belongs to the last turn's reward,
and compares it with other conversations only. A baseline taken from the conversation itself
depends on that conversation's actions and biases the gradient (Williams 1992, "Simple statistical
gradient-following algorithms"; for turn-level credit see MT-GRPO, arXiv 2505.11821).

An outcome that nobody gave is not 0: beside conversations that have one, it counts as their mean, so
that it speaks neither for a conversation nor against it.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from trainer.config import CreditMode

MIN_OTHERS = 4
"""With fewer other conversations at a turn index, the baseline is taken over all their turns."""

ROUNDING = 1e-12
"""Advantages smaller than this are rounding errors of a mean, and count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRewards:
    """The rewards of one conversation.

    Attributes:
        turns: One reward an assistant turn; None where nobody scored. A missing score is not 0.
        outcome: Score of the conversation as a whole, None if not given.
        group: Conversations with equal groups answer the same prompt; None belongs to no group.
    """

    turns: tuple[float | None, ...]
    outcome: float | None = None
    group: Hashable = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCredit:
    """What credit assignment made of one turn.

    Attributes:
        reward: The turn's own score.
        return_: What the turn is credited with before the baseline is taken off.
        advantage: What the loss multiplies with; None means the turn carries no gradient.
    """

    reward: float | None
    return_: float | None
    advantage: float | None


def assign_credit(
    rewards: Sequence[ConversationRewards],
    *,
    mode: CreditMode,
    gamma: float,
    outcome_weight: float,
) -> list[list[TurnCredit]]:
    """Return the credit of every turn of every conversation.

    Modes: `recipe` (reward minus the conversation's own mean, as the published recipe has it),
    `immediate` (the reward alone), `return_to_go` (G_t), `outcome` (the conversation's undiscounted
    total, for each of its turns). All but `recipe` subtract a leave-one-out baseline over other
    conversations: those of the same group if there are any, else those that have this turn index
    if there are `MIN_OTHERS`, else all turns of all others.

    An unscored turn carries no gradient, and returns skip its reward. The one exception is mode
    `outcome`, where a scored outcome speaks for each turn of its conversation.
    """
    if mode is CreditMode.RECIPE:
        return [_against_own_mean(conversation) for conversation in rewards]
    returns = [
        _returns(conversation, outcome_weight * outcome, mode=mode, gamma=gamma)
        for conversation, outcome in zip(rewards, _outcomes(rewards), strict=True)
    ]
    baselines = _Baselines.over(rewards, returns)
    return [
        [
            TurnCredit(
                reward=reward,
                return_=value,
                advantage=None
                if value is None
                else _round(value - baselines.without(index, turn, conversation.group)),
            )
            for turn, (reward, value) in enumerate(
                zip(conversation.turns, returns[index], strict=True)
            )
        ]
        for index, conversation in enumerate(rewards)
    ]


def _against_own_mean(conversation: ConversationRewards) -> list[TurnCredit]:
    scored = [reward for reward in conversation.turns if reward is not None]
    mean = sum(scored) / len(scored) if scored else 0.0
    return [
        TurnCredit(
            reward=reward,
            return_=reward,
            advantage=None if reward is None else _round(reward - mean),
        )
        for reward in conversation.turns
    ]


def _outcomes(rewards: Sequence[ConversationRewards]) -> list[float]:
    """Return each conversation's outcome; one that is missing is the mean of those given.

    Of those in its group if there are any, else of all; 0 where nobody gave one at all.
    """
    everywhere: list[float] = []
    by_group: dict[Hashable, list[float]] = defaultdict(list)
    for conversation in rewards:
        if conversation.outcome is not None:
            everywhere.append(conversation.outcome)
            by_group[conversation.group].append(conversation.outcome)

    def expected(group: Hashable) -> float:
        given = by_group.get(group, []) if group is not None else []
        return fmean(given or everywhere or [0.0])

    return [
        expected(conversation.group) if conversation.outcome is None else conversation.outcome
        for conversation in rewards
    ]


def _returns(
    conversation: ConversationRewards, outcome: float, *, mode: CreditMode, gamma: float
) -> list[float | None]:
    """What each turn is credited with; None for a turn that carries no gradient.

    Args:
        conversation: Its own scores.
        outcome: What its outcome adds, the weight included.
        mode: How to credit.
        gamma: The discount.
    """
    rewards = conversation.turns
    if mode is CreditMode.IMMEDIATE:
        return list(rewards)
    if mode is CreditMode.OUTCOME:
        total = sum(reward for reward in rewards if reward is not None) + outcome
        judged = conversation.outcome is not None
        return [total if judged or reward is not None else None for reward in rewards]
    returns: list[float | None] = []
    ahead = 0.0
    for reward in reversed(rewards):
        here = reward or 0.0
        if not returns:
            here += outcome
        ahead = here + gamma * ahead
        returns.append(None if reward is None else ahead)
    return returns[::-1]


def _round(advantage: float) -> float:
    return 0.0 if abs(advantage) < ROUNDING else advantage


@dataclass(slots=True)
class _Pool:
    """Sum and count of returns, from which one conversation's own share can be taken out."""

    total: float = 0.0
    count: int = 0
    own: dict[int, list[float]] = field(default_factory=dict[int, list[float]])

    def add(self, conversation: int, value: float) -> None:
        self.total += value
        self.count += 1
        self.own.setdefault(conversation, []).append(value)

    def others(self, conversation: int) -> int:
        """How many returns belong to other conversations."""
        return self.count - len(self.own.get(conversation, ()))

    def mean_without(self, conversation: int) -> float:
        return (self.total - sum(self.own.get(conversation, ()))) / self.others(conversation)


@dataclass(slots=True)
class _Baselines:
    everything: _Pool = field(default_factory=_Pool)
    by_turn: dict[int, _Pool] = field(default_factory=lambda: defaultdict(_Pool))
    by_group: dict[tuple[Hashable, int], _Pool] = field(default_factory=lambda: defaultdict(_Pool))

    @classmethod
    def over(
        cls, rewards: Sequence[ConversationRewards], returns: Sequence[Sequence[float | None]]
    ) -> "_Baselines":
        baselines = cls()
        for index, conversation in enumerate(rewards):
            for turn, value in enumerate(returns[index]):
                if value is None:
                    continue
                baselines.everything.add(index, value)
                baselines.by_turn[turn].add(index, value)
                if conversation.group is not None:
                    baselines.by_group[conversation.group, turn].add(index, value)
        return baselines

    def without(self, conversation: int, turn: int, group: Hashable) -> float:
        """Return the baseline for a turn, from other conversations; 0 if there are none."""
        if group is not None and self.by_group[group, turn].others(conversation):
            return self.by_group[group, turn].mean_without(conversation)
        if self.by_turn[turn].others(conversation) >= MIN_OTHERS:
            return self.by_turn[turn].mean_without(conversation)
        if self.everything.others(conversation):
            return self.everything.mean_without(conversation)
        return 0.0
