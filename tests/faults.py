"""Faults that a run is made to suffer: hooks for the forks of `tests.forking`."""

import errno
import itertools
import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import trainer.runs.worker
from trainer.engine.gradients import BatchRunner
from trainer.engine.policy import Policy
from trainer.runs import metric_files
from trainer.runs.database_recorder import DatabaseRecorder
from trainer.runs.recorder import FileRecorder

FULL = "disk-is-full"
"""The file beside the run's that stands for a full disk, where no small disk can be had."""

CHATTER_BYTES = 10_000_000


def slow() -> None:
    """Take a moment for each pass, so that a test comes in between."""
    _before(BatchRunner, "run", lambda *_, **__: time.sleep(0.1))


def slow_pass() -> None:
    """Take so long for the tenth step's pass that nobody can wait for its end."""
    steps = itertools.count(1)

    def wait(*_: Any, backward: bool) -> None:
        if backward and next(steps) == 10:
            time.sleep(60)

    _before(BatchRunner, "run", wait)


def no_space() -> None:
    """Refuse to write metrics as a full disk does."""

    def refuse(path: Path, _rows: object) -> None:
        if path.with_name(FULL).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    _before(metric_files, "append_rows", refuse)
    slow()


def chatty() -> None:
    """Print ten megabytes before the second step ends, as a C library would."""

    def chatter(_recorder: FileRecorder, row: Any) -> None:
        for number in range(CHATTER_BYTES // 50 if row.step == 1 else 0):
            os.write(2, b"chatter %08d ------------------------------ x\n" % number)

    _before(FileRecorder, "step", chatter)
    slow()


def not_a_number() -> None:
    """Compute no number in the third step, as broken hardware would."""
    whole, trained = Policy.logprobs, 0

    def logprobs(self: Policy, questions: Any) -> list[torch.Tensor]:
        nonlocal trained
        trained += torch.is_grad_enabled()
        answers = whole(self, questions)
        return [answer * math.nan for answer in answers] if trained == 3 else answers

    Policy.logprobs = logprobs


def stubborn() -> None:
    """Neither hear a stop request nor a signal."""
    DatabaseRecorder.progress = lambda self, share, message: False
    whole = trainer.runs.worker.stop_on_signals

    def deaf(*args: Any) -> None:
        whole(*args)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    trainer.runs.worker.stop_on_signals = deaf
    slow()


def _before(owner: Any, name: str, first: Callable[..., None]) -> None:
    """Let something happen before each call of a function."""
    whole = getattr(owner, name)

    def replacement(*args: Any, **kwargs: Any) -> Any:
        first(*args, **kwargs)
        return whole(*args, **kwargs)

    setattr(owner, name, replacement)


HOOKS: dict[str, Callable[[], None]] = {
    "slow": slow,
    "slow pass": slow_pass,
    "no space": no_space,
    "chatty": chatty,
    "not a number": not_a_number,
    "stubborn": stubborn,
}
