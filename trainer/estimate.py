"""How long a run will take and what memory it needs: arithmetic on a calibration, no torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainer.choices import OldLogprobs
from trainer.config import TrainConfig
from trainer.data.turns import TrainableTurn
from trainer.engine.prefix_tree import build_prefix_tree, pack
from trainer.pass_costs import RECOMPUTING_SHARE, Machine, Work
from trainer.plan import by_conversation, group_by_budget, make_plan


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
