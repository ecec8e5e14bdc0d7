"""How long a run will take and what memory it needs: arithmetic on a calibration, no torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from trainer.choices import OldLogprobs
from trainer.config import TrainConfig
from trainer.data.turns import TrainableTurn
from trainer.engine.prefix_tree import build_prefix_tree, pack
from trainer.plan import by_conversation, group_by_budget, make_plan

RECOMPUTING_SHARE = 1 / 3
"""Recomputing every layer repeats the forward pass, a third of forward and backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a pass computes.

    Attributes:
        tokens: Distinct tokens.
        pairs: Pairs of a token and one that it attends to, itself included.
    """

    tokens: int
    pairs: int

    @classmethod
    def chain(cls, tokens: int) -> Self:
        """Return the work of a single sequence."""
        return cls(tokens=tokens, pairs=tokens * (tokens + 1) // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """Seconds of a forward and backward pass, none of its layers recomputed.

    Attributes:
        fixed_s: For any pass.
        token_s: For each token.
        pair_s: For each pair of a token and one that it attends to.
    """

    fixed_s: float
    token_s: float
    pair_s: float

    @classmethod
    def fit(cls, measured: Sequence[tuple[int, float]]) -> Self:
        """Return the time as a function of the work.

        Args:
            measured: One to three different lengths of single sequences, ascending, each with the
                seconds it took. Three tell all three parts; two leave attention to the tokens'
                part; one tells the tokens' part alone. No part is below 0.
        """
        works = [Work.chain(length) for length, _ in measured]
        seconds = [taken for _, taken in measured]
        if len(measured) == 1:
            return cls(fixed_s=0.0, token_s=seconds[0] / works[0].tokens, pair_s=0.0)
        tokens = works[-1].tokens - works[0].tokens
        token_s, pair_s = (seconds[-1] - seconds[0]) / tokens, 0.0
        if len(measured) == 3:
            slopes = [
                (seconds[i + 1] - seconds[i]) / (works[i + 1].tokens - works[i].tokens)
                for i in range(2)
            ]
            pairs = [
                (works[i + 1].pairs - works[i].pairs) / (works[i + 1].tokens - works[i].tokens)
                for i in range(2)
            ]
            curved = (slopes[1] - slopes[0]) / (pairs[1] - pairs[0])
            if curved > 0 and slopes[0] > curved * pairs[0]:
                token_s, pair_s = slopes[0] - curved * pairs[0], curved
        fixed_s = seconds[0] - token_s * works[0].tokens - pair_s * works[0].pairs
        return cls(fixed_s=max(0.0, fixed_s), token_s=max(0.0, token_s), pair_s=pair_s)

    def seconds(self, work: Work) -> float:
        """Return what a pass takes."""
        return self.fixed_s + self.token_s * work.tokens + self.pair_s * work.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class PassMemory:
    """Bytes of a forward and backward pass, beside model and optimiser.

    Attributes:
        fixed_bytes: For any pass.
        kept_bytes: For each token, if no layer is recomputed.
        recomputed_bytes: For each token, if every layer is.
    """

    fixed_bytes: float
    kept_bytes: float
    recomputed_bytes: float

    def needed_bytes(self, tokens: int, recomputed: float) -> float:
        """Return what a pass takes with this share (0 to 1) of the layers recomputed."""
        token = self.kept_bytes + recomputed * (self.recomputed_bytes - self.kept_bytes)
        return self.fixed_bytes + tokens * token

    def recomputed_share(self, tokens: int, limit_bytes: float) -> float:
        """Return the share of the layers that a pass has to recompute; 1 if even all are too few."""
        excess = self.needed_bytes(tokens, 0) - limit_bytes
        if excess <= 0:
            return 0.0
        saved = tokens * (self.kept_bytes - self.recomputed_bytes)
        return min(1.0, excess / saved) if saved > 0 else 1.0

    def most_tokens(self, limit_bytes: float, recomputed: float) -> int:
        """Return the longest pass that fits, 0 if none does."""
        token = self.needed_bytes(1, recomputed) - self.fixed_bytes
        return max(0, int((limit_bytes - self.fixed_bytes) / token))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a short trial says of a model on this machine.

    Attributes:
        pass_time: Seconds of a pass.
        forward_share: A forward pass alone takes this share of it.
        step_s: Seconds of an optimiser step.
        answer_token_s: Seconds for each token of an answer.
        load_s: Seconds until the model is loaded.
        pass_memory: Bytes of a pass.
        resident_bytes: What the process (or on CUDA, the device) holds with the model loaded.
        model_bytes: What of that came with the model.
        optimizer_bytes: Gradients and moving averages of the adapter.
        shares_prefixes: Whether a pass computes shared prefixes once.
    """

    pass_time: PassTime
    forward_share: float
    step_s: float
    answer_token_s: float
    load_s: float
    pass_memory: PassMemory
    resident_bytes: int
    model_bytes: int
    optimizer_bytes: int
    shares_prefixes: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the calibration that `to_json` wrote.

        Raises:
            KeyError, TypeError: if the data is of another form.
        """
        times, memory = PassTime(**data["pass_time"]), PassMemory(**data["pass_memory"])
        return cls(**{**data, "pass_time": times, "pass_memory": memory})


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A calibrated machine as it is now.

    Attributes:
        calibration: How fast it is, and what the model takes.
        free_bytes: What is free beside the loaded model and the optimiser.
        limit_bytes: What of that a pass may take.
    """

    calibration: Calibration
    free_bytes: float
    limit_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will take.

    Attributes:
        seconds: From start to end.
        load_s: Of that, loading the model.
        measure_s: Asking the model about the data, before the first step and on held-out data.
        train_s: Forward and backward passes and optimiser steps.
        sample_s: Answering the sample prompts before and after, at their full length.
        tokens_per_s: Distinct tokens through forward and backward pass.
        memory_bytes: The most that the process (or on CUDA, the device) will hold.
        free_bytes: What is free for it now.
        longest_pass_tokens: Distinct tokens of the largest pass.
        recomputed: The share of its layers that the largest pass computes twice to fit.
    """

    seconds: float
    load_s: float
    measure_s: float
    train_s: float
    sample_s: float
    tokens_per_s: float
    memory_bytes: int
    free_bytes: int
    longest_pass_tokens: int
    recomputed: float

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    def to_text(self) -> str:
        """Return it in one line."""
        return (
            f"about {self.seconds:.0f} s: {self.load_s:.0f} to load the model, "
            f"{self.measure_s:.0f} to measure the data, {self.train_s:.0f} to train, "
            f"{self.sample_s:.0f} for samples; {self.memory_bytes / 1e9:.1f} GB of memory"
        )


def estimate_run(
    turns: Sequence[TrainableTurn],
    held_out: Sequence[TrainableTurn],
    config: TrainConfig,
    machine: Machine,
    *,
    answers: int,
) -> Estimate:
    """Return what a run on one device will take.

    The passes are those of the first epoch; later epochs mix the conversations anew, and their
    passes are much alike.

    Args:
        turns: The turns to train on, at least one.
        held_out: The turns to judge by.
        config: The settings.
        machine: What the run has.
        answers: How many sample prompts are answered, before and after.
    """
    calibration, memory = machine.calibration, machine.calibration.pass_memory
    plan = make_plan(turns, config)
    groups = [group for step in plan if step.epoch == 0 for group in step.passes]
    judging = group_by_budget(by_conversation(held_out), held_out, config.token_budget)

    def forward_s(works: Sequence[Work]) -> float:
        return calibration.forward_share * sum(map(calibration.pass_time.seconds, works))

    works = passes_of(turns, groups, config, shares_prefixes=calibration.shares_prefixes)
    judges = passes_of(held_out, judging, config, shares_prefixes=calibration.shares_prefixes)
    measured = works if _is_measured(turns, config) else []
    train_s = calibration.step_s * len(plan) + config.epochs * sum(
        calibration.pass_time.seconds(work)
        * (1 + RECOMPUTING_SHARE * memory.recomputed_share(work.tokens, machine.limit_bytes))
        for work in works
    )
    measure_s = forward_s(measured) + (1 + config.epochs) * forward_s(judges)
    sample_s = 2 * answers * config.sample_tokens * calibration.answer_token_s
    longest = max(work.tokens for work in works)
    recomputed = memory.recomputed_share(longest, machine.limit_bytes)
    held_bytes = calibration.resident_bytes + calibration.optimizer_bytes
    return Estimate(
        seconds=calibration.load_s + measure_s + train_s + sample_s,
        load_s=calibration.load_s,
        measure_s=measure_s,
        train_s=train_s,
        sample_s=sample_s,
        tokens_per_s=config.epochs * sum(work.tokens for work in works) / train_s,
        memory_bytes=round(held_bytes + memory.needed_bytes(longest, recomputed)),
        free_bytes=round(held_bytes + machine.free_bytes),
        longest_pass_tokens=longest,
        recomputed=recomputed,
    )


def passes_of(
    turns: Sequence[TrainableTurn],
    groups: Sequence[Sequence[int]],
    config: TrainConfig,
    *,
    shares_prefixes: bool,
) -> list[Work]:
    """Return the passes that the engine makes of groups of turns.

    Args:
        turns: The turns.
        groups: Positions in `turns` that the engine is given together.
        config: The settings.
        shares_prefixes: Whether a pass computes shared prefixes once; else it is one turn.
    """
    works: list[Work] = []
    for group in groups:
        inputs = [turns[position].rendered.model_input for position in group]
        if not shares_prefixes:
            works += [Work.chain(len(ids)) for ids in inputs]
            continue
        owners = [turns[position].conversation for position in group]
        goes_on = [i > 0 and owners[i] == owners[i - 1] for i in range(len(owners))]
        for part in pack(inputs, config.token_budget, goes_on):
            tree = build_prefix_tree([inputs[index] for index in part])
            works.append(Work(tokens=len(tree), pairs=sum(tree.depth) + len(tree)))
    return works


def _is_measured(turns: Sequence[TrainableTurn], config: TrainConfig) -> bool:
    """Return whether the model is asked about the data before the first step."""
    if config.kl_weight > 0 or config.max_kl > 0:
        return True
    unsampled = any(turn.rendered.sampled_logprobs is None for turn in turns)
    return config.old_logprobs is not OldLogprobs.CONSTANT and unsampled
