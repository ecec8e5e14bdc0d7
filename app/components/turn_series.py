"""Per-turn metric rows -> the series that the charts draw. Pure; values that are no number drop out."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from db.records import TurnMetric

TurnValue = Callable[[TurnMetric], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionPoint:
    """One turn position in one optimiser step, over the step's conversations.

    Attributes:
        low: First quartile of the value.
        high: Third quartile of the value.
        reward: Mean reward of these turns, None if none has one.
    """

    step: int
    epoch: int
    turn: int
    median: float
    low: float
    high: float
    conversations: int
    reward: float | None
    advantage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPoint:
    """How far one optimiser step's replies moved since the run first saw them, in nats per token.

    Attributes:
        signal: Sum of advantage x change over tokens, divided by the sum of |advantage|: above 0
            means that the model moves as the scores ask.
        praised: Mean change of replies with a positive advantage, None if the step has none.
        criticised: Mean change of replies with a negative advantage, None if the step has none.
    """

    step: int
    epoch: int
    signal: float
    praised: float | None
    criticised: float | None
    turns: int


def by_position(rows: Iterable[TurnMetric], value: TurnValue) -> dict[int, list[PositionPoint]]:
    """Return for each turn position its points, in order of steps."""
    groups: dict[tuple[int, int], list[TurnMetric]] = defaultdict(list)
    for row in rows:
        if math.isfinite(value(row)):
            groups[row.turn, row.step].append(row)
    series: dict[int, list[PositionPoint]] = {}
    for (turn, step), members in sorted(groups.items(), key=lambda item: item[0]):
        values = [value(row) for row in members]
        low, median, high = _quartiles(values)
        rewards = [row.reward for row in members if row.reward is not None]
        series.setdefault(turn, []).append(
            PositionPoint(
                step=step,
                epoch=members[0].epoch,
                turn=turn,
                median=median,
                low=low,
                high=high,
                conversations=len(members),
                reward=statistics.fmean(rewards) if rewards else None,
                advantage=statistics.fmean(row.advantage for row in members),
            )
        )
    return series


def of_conversation(
    rows: Iterable[TurnMetric], conversation: int, value: TurnValue
) -> dict[int, list[TurnMetric]]:
    """Return for each turn of one conversation its rows with a finite value, in order of steps."""
    series: dict[int, list[TurnMetric]] = {}
    chosen = [r for r in rows if r.conversation == conversation and math.isfinite(value(r))]
    for row in sorted(chosen, key=lambda row: (row.turn, row.step)):
        series.setdefault(row.turn, []).append(row)
    return series


def learning_curve(rows: Iterable[TurnMetric]) -> list[LearningPoint]:
    """Return one point for each optimiser step; the first time a turn is seen counts as change 0."""
    changes = _changes(rows)
    steps: dict[int, list[tuple[TurnMetric, float]]] = defaultdict(list)
    for row, change in changes:
        steps[row.step].append((row, change))
    return [_learning_point(step, members) for step, members in sorted(steps.items())]


def learning_signal(rows: Iterable[TurnMetric]) -> float | None:
    """Return the signal over the whole last epoch; None before a second epoch has begun."""
    changes = _changes(rows)
    last = max((row.epoch for row, _ in changes), default=0)
    if last == 0:
        return None
    return _learning_point(0, [item for item in changes if item[0].epoch == last]).signal


def _changes(rows: Iterable[TurnMetric]) -> list[tuple[TurnMetric, float]]:
    """Pair each row with its log-probability's change since its turn was first seen."""
    first: dict[tuple[int, int], float] = {}
    pairs: list[tuple[TurnMetric, float]] = []
    for row in sorted(rows, key=lambda row: row.step):
        if math.isfinite(row.logprob_mean) and math.isfinite(row.advantage):
            start = first.setdefault((row.conversation, row.turn), row.logprob_mean)
            pairs.append((row, row.logprob_mean - start))
    return pairs


def _learning_point(step: int, members: Sequence[tuple[TurnMetric, float]]) -> LearningPoint:
    asked = sum(row.response_tokens * row.advantage * change for row, change in members)
    scale = sum(row.response_tokens * abs(row.advantage) for row, _ in members)
    return LearningPoint(
        step=step,
        epoch=members[0][0].epoch,
        signal=asked / scale if scale else 0.0,
        praised=_mean_change([item for item in members if item[0].advantage > 0]),
        criticised=_mean_change([item for item in members if item[0].advantage < 0]),
        turns=len(members),
    )


def _mean_change(members: Sequence[tuple[TurnMetric, float]]) -> float | None:
    tokens = sum(row.response_tokens for row, _ in members)
    if not tokens:
        return None
    return sum(row.response_tokens * change for row, change in members) / tokens


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high
