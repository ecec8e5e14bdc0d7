"""A checkpoint: everything a run needs to go on as if it had never stopped."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from trainer.errors import CheckpointError
from trainer.runs.folder import RunFolder, atomic_folder, read_json, write_json

KEPT = 2
"""How many checkpoints stay on disk: the newest, and the one before should it be damaged."""


Logprobs = tuple[float, ...]
"""The log-probability of each response token of a turn, in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How a state of the adapter does on the held-out conversations.

    Attributes:
        epoch: Epoch after which it was taken, from 0.
        step: Optimiser steps done by then.
        signal: How far the held-out replies moved as their scores ask, in nats a token; see
            `trainer.held_out.signal`. 0 is the model that the run started from.
        conversations: How many conversations were judged.
        turns: How many turns of theirs.
        response_tokens: How many reply tokens.
    """

    epoch: int
    step: int
    signal: float
    conversations: int
    turns: int
    response_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands between two optimiser steps.

    Attributes:
        step: Optimiser steps done.
        old_logprobs: For each trainable turn, in order, the behaviour policy's log-probabilities
            of its response tokens: taken once, kept for all epochs.
        base_logprobs: The same under the base model; None if it was not asked.
        held_out_logprobs: Those of the held-out turns under the base model.
        judgements: What the held-out conversations said so far, in order.
        train_s: Seconds spent in forward, backward and optimiser so far.
        computed_tokens: Tokens sent through the model in training passes so far.
        kl_limit_passed: Whether the last step's KL passed the limit, so that none follows.
    """

    step: int
    old_logprobs: tuple[Logprobs, ...]
    base_logprobs: tuple[Logprobs, ...] | None
    held_out_logprobs: tuple[Logprobs, ...]
    judgements: tuple[Judgement, ...] = ()
    train_s: float = 0.0
    computed_tokens: int = 0
    kl_limit_passed: bool = False

    @property
    def best(self) -> Judgement | None:
        """The best judgement, if it is better than that of the model it started from, which is 0."""
        better = [judgement for judgement in self.judgements if judgement.signal > 0]
        return max(better, key=lambda judgement: judgement.signal, default=None)

    def after_step(
        self, *, seconds: float, computed_tokens: int, kl_limit_passed: bool = False
    ) -> "Progress":
        """Return the progress after one more optimiser step."""
        return replace(
            self,
            step=self.step + 1,
            train_s=self.train_s + seconds,
            computed_tokens=self.computed_tokens + computed_tokens,
            kl_limit_passed=kl_limit_passed,
        )

    def after_judgement(self, judgement: Judgement) -> "Progress":
        """Return the progress after the held-out conversations were asked."""
        return replace(self, judgements=(*self.judgements, judgement))

    def to_json(self) -> dict[str, Any]:
        """Return the progress as JSON data; `from_json` is its inverse.

        Where the base model is the old policy, its log-probabilities are not written twice.
        """
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.base_logprobs is not None:
            pairs = zip(self.base_logprobs, self.old_logprobs, strict=True)
            data["base_logprobs"] = [None if base == old else base for base, old in pairs]
        return {**data, "judgements": [asdict(judgement) for judgement in self.judgements]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Progress":
        """Build the progress from its JSON data; numbers keep every bit on the way."""
        old = _tuples(data["old_logprobs"])
        # Checkpoints from before the base model was asked have neither this nor what was held out.
        base = data.get("base_logprobs")
        if base is not None:
            pairs = zip(base, old, strict=True)
            base = tuple(same if turn is None else tuple(turn) for turn, same in pairs)
        return cls(
            step=data["step"],
            old_logprobs=old,
            base_logprobs=base,
            held_out_logprobs=_tuples(data.get("held_out_logprobs", [])),
            judgements=tuple(Judgement(**judgement) for judgement in data.get("judgements", [])),
            train_s=data["train_s"],
            computed_tokens=data["computed_tokens"],
            kl_limit_passed=data["kl_limit_passed"],
        )


def _tuples(turns: list[list[float]]) -> tuple[Logprobs, ...]:
    return tuple(tuple(turn) for turn in turns)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk."""

    path: Path
    progress: Progress

    @property
    def state(self) -> Path:
        """The folder with adapter, optimiser and random-number state."""
        return self.path / "state"


def save_checkpoint(
    folder: RunFolder, progress: Progress, save_state: Callable[[Path], None]
) -> None:
    """Write a checkpoint that appears whole or not at all, then drop those no longer needed.

    The newest ones stay, and the one that did best on held-out conversations.

    Args:
        folder: The run's folder.
        progress: Where the run stands.
        save_state: Writes adapter and optimiser into the folder it is given.
    """
    folder.checkpoints.mkdir(exist_ok=True)  # without parents: a folder that is gone stays gone
    with atomic_folder(checkpoint_path(folder, progress.step)) as temporary:
        save_state(temporary / "state")
        write_json(temporary / "progress.json", progress.to_json())
    best = checkpoint_path(folder, progress.best.step) if progress.best else None
    for old in _paths(folder)[:-KEPT]:
        if old != best:
            shutil.rmtree(old)


def checkpoint_path(folder: RunFolder, step: int) -> Path:
    """Return the folder of the checkpoint after so many optimiser steps."""
    return folder.checkpoints / f"{step:08d}"


def checkpoint_paths(folder: RunFolder) -> list[Path]:
    """Return the folders of a run's checkpoints, newest first."""
    return _paths(folder)[::-1]


def read_checkpoint(path: Path) -> Checkpoint:
    """Return a checkpoint.

    Raises:
        CheckpointError: if it is damaged.
    """
    data = read_json(path / "progress.json")
    try:
        return Checkpoint(path=path, progress=Progress.from_json(data))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"progress.json lacks {error}", where=str(path)) from error


def _paths(folder: RunFolder) -> list[Path]:
    if not folder.checkpoints.exists():
        return []
    return sorted(path for path in folder.checkpoints.iterdir() if path.name.isdigit())
