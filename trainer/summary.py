"""The totals of a finished run: what it cost, and each epoch's means."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from trainer.data.turns import TrainableTurn
from trainer.engine.prefix_tree import count_distinct
from trainer.engines import Engine
from trainer.plan import Step
from trainer.runs.checkpoint import Progress
from trainer.runs.folder import RunFolder, write_json

PER_TOKEN = ("ratio_mean", "clipfrac", "clipfrac_binding", "kl_mean", "logprob_mean")


def write_summary(
    folder: RunFolder,
    turns: Sequence[TrainableTurn],
    plan: Sequence[Step],
    progress: Progress,
    client: Engine,
    ending: str,
    *,
    load_s: float,
    total_s: float,
) -> None:
    """Write `summary.json`.

    `computed_tokens`, `distinct_tokens` and `turn_tokens` count all epochs that were trained:
    tokens sent through the model, tokens that differ from each other in their prefix, and tokens
    that one pass a turn would have sent. `held_out` is None where nothing was held out; its
    `best_epoch` is None where no epoch did better than the model the run started from.
    """
    done = [step for step in plan if step.index < progress.step]
    inputs = [turn.rendered.model_input for turn in turns]
    groups = [group for step in done for group in step.passes]
    write_json(
        folder.summary,
        {
            "ending": ending,
            "steps": progress.step,
            "planned_steps": len(plan),
            "epochs": epoch_means(read_metrics(folder)),
            "held_out": _held_out(progress),
            "load_s": load_s,
            "train_s": progress.train_s,
            "total_s": total_s,
            "tokens_per_s": progress.computed_tokens / progress.train_s,
            "peak_memory_bytes": client.peak_memory_bytes(),
            "computed_tokens": progress.computed_tokens,
            "distinct_tokens": sum(count_distinct([inputs[p] for p in g]) for g in groups),
            "turn_tokens": sum(len(inputs[p]) for g in groups for p in g),
        },
    )


def _held_out(progress: Progress) -> dict[str, Any] | None:
    if not progress.judgements:
        return None
    best = progress.best
    return {
        "best_epoch": None if best is None else best.epoch,
        "epochs": [asdict(judgement) for judgement in progress.judgements],
    }


def read_metrics(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the rows of `metrics.jsonl`."""
    with folder.metrics.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def epoch_means(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one object an epoch.

    `loss_mean` is the mean over turns of their mean token loss, the figure the published recipe
    prints; the others are means over response tokens.
    """
    epochs: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        epochs.setdefault(row["epoch"], []).append(row)
    return [_means(epoch, epochs[epoch]) for epoch in sorted(epochs)]


def _means(epoch: int, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    tokens = sum(row["response_tokens"] for row in rows)
    means = {
        name: sum(row[name] * row["response_tokens"] for row in rows) / tokens for name in PER_TOKEN
    }
    return {
        "epoch": epoch,
        "turns": len(rows),
        "response_tokens": tokens,
        "loss_mean": sum(row["loss_mean"] for row in rows) / len(rows),
        "loss_sum": sum(row["loss_sum"] for row in rows),
        **means,
    }
