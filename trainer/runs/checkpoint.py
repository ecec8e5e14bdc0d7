"""A checkpoint: everything a run needs to go on as if it had never stopped."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trainer.errors import CheckpointError
from trainer.runs.folder import RunFolder, atomic_folder, read_json, write_json

KEPT = 2
"""How many checkpoints stay on disk: the newest, and the one before should it be damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands between two optimiser steps.

    Attributes:
        step: Optimiser steps done.
        old_logprobs: For each trainable turn, in order, the behaviour policy's log-probabilities
            of its response tokens: taken once, kept for all epochs.
        train_s: Seconds spent in forward, backward and optimiser so far.
        computed_tokens: Tokens sent through the model in training passes so far.
        kl_limit_passed: Whether the last step's KL passed the limit, so that none follows.
    """

    step: int
    old_logprobs: tuple[tuple[float, ...], ...]
    train_s: float = 0.0
    computed_tokens: int = 0
    kl_limit_passed: bool = False

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

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Progress":
        """Build the progress from its JSON data; numbers keep every bit on the way."""
        return cls(
            step=data["step"],
            old_logprobs=tuple(tuple(turn) for turn in data["old_logprobs"]),
            train_s=data["train_s"],
            computed_tokens=data["computed_tokens"],
            kl_limit_passed=data["kl_limit_passed"],
        )


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
    """Write a checkpoint that appears whole or not at all, then drop older ones.

    Args:
        folder: The run's folder.
        progress: Where the run stands.
        save_state: Writes adapter and optimiser into the folder it is given.
    """
    with atomic_folder(folder.checkpoints / f"{progress.step:08d}") as temporary:
        save_state(temporary / "state")
        write_json(temporary / "progress.json", asdict(progress))
    for old in _paths(folder)[:-KEPT]:
        shutil.rmtree(old)


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
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"progress.json lacks {error}", where=str(path)) from error


def _paths(folder: RunFolder) -> list[Path]:
    if not folder.checkpoints.exists():
        return []
    return sorted(path for path in folder.checkpoints.iterdir() if path.name.isdigit())
