"""The processes of one run, its ranks: who leads, what they tell each other, how they fail together.

A launcher (`accelerate launch`, `torchrun`) starts several copies of a command; each becomes a rank
with a GPU of its own. All of them go through the same code. What must happen once is done by the
leader inside `lead`; whatever fails on one rank is raised on all, so that none waits for ever.
"""

import atexit
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch import Tensor

from db.errors import EveryTurnError
from trainer.errors import (
    BadDataError,
    CheckpointError,
    ConfigError,
    DiskFullError,
    ModelError,
    NotFiniteError,
    OutOfMemoryError,
    TrainerError,
)

T = TypeVar("T")

LONGEST_WAIT = timedelta(hours=24)
"""How long ranks wait while the leader answers sample prompts; a dead rank is noticed at once."""

KINDS: dict[str, type[TrainerError]] = {
    kind.__name__: kind
    for kind in (
        BadDataError,
        CheckpointError,
        ConfigError,
        DiskFullError,
        ModelError,
        NotFiniteError,
        OutOfMemoryError,
    )
}
"""Errors that keep their kind on the way to the other ranks."""


class Ranks:
    """This process among those of its run. A process alone (count 1) communicates with nobody.

    Every method but the properties is a meeting: all ranks must call the same ones in the same
    order.

    Attributes:
        index: Number of this rank, from 0.
        count: How many there are.
    """

    def __init__(self, index: int = 0, count: int = 1) -> None:
        """Be rank `index` of `count`; use `join_ranks` to become one of several."""
        self.index = index
        self.count = count

    @property
    def is_leader(self) -> bool:
        """Whether this rank does what must happen once: files, database, samples."""
        return self.index == 0

    def lead(self, work: Callable[[], T]) -> T:
        """Do something on the leader alone and return there what it returned.

        The others return a copy, so the result must be JSON data (None included).
        """
        if self.count == 1:
            return work()
        result = self.together(lambda: work() if self.is_leader else None)
        return self.gather(result)[0]

    def together(self, work: Callable[[], T]) -> T:
        """Do something on every rank; an error on any of them is raised on all.

        Raises:
            TrainerError: on every rank the error of the lowest rank that failed.
        """
        if self.count == 1:
            return work()
        result, error = None, None
        try:
            result = work()
        except Exception as caught:  # noqa: BLE001 - told to the others, then raised below
            error = caught
        failures = self.gather(_described(error))
        failed = [index for index, failure in enumerate(failures) if failure is not None]
        if not failed:
            return cast(T, result)
        if error is not None and failed[0] == self.index:
            raise error
        raise _rebuilt(failures[failed[0]], failed[0]) from error

    def gather(self, value: Any) -> list[Any]:
        """Return the JSON value that each rank brought, in the order of ranks."""
        if self.count == 1:
            return [value]
        data = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        lengths = torch.zeros(self.count, dtype=torch.int64)
        lengths[self.index] = len(data)
        self.sum(lengths)
        rows = torch.zeros(self.count, int(lengths.max()), dtype=torch.uint8)
        rows[self.index, : len(data)] = data
        self.sum(rows)
        sizes = lengths.tolist()
        return [json.loads(bytes(rows[i, : sizes[i]].tolist())) for i in range(self.count)]

    def sum(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, the same bits on each."""
        if self.count > 1:
            with _lost_ranks():
                dist.all_reduce(tensor)


ALONE = Ranks()


def join_ranks(device: str) -> Ranks:
    """Become one of the ranks that a launcher started; without a launcher nothing happens.

    Args:
        device: "auto", "cpu" or "cuda", as the run is configured.

    Raises:
        ConfigError: if there are more ranks than CUDA devices.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE
    on_cuda = device != "cpu" and torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if on_cuda and local > torch.cuda.device_count():
        raise ConfigError(
            f"{local} processes were launched for {torch.cuda.device_count()} CUDA devices",
            where="launcher",
            remedy="Launch one process for each device (--num_processes).",
        )
    # Beside NCCL for tensors on a GPU there is gloo for those on the CPU: words and figures.
    backend = "cuda:nccl,cpu:gloo" if on_cuda else "gloo"
    if not dist.is_initialized():
        with _lost_ranks():
            PartialState(cpu=not on_cuda, backend=backend, timeout=LONGEST_WAIT)
        atexit.register(dist.destroy_process_group)
    state = PartialState()
    return Ranks(state.process_index, state.num_processes)


def _described(error: Exception | None) -> dict[str, Any] | None:
    """Return an error as JSON data that `_rebuilt` understands."""
    if error is None:
        return None
    if not isinstance(error, EveryTurnError):
        return {"kind": "", "what": f"{type(error).__name__}: {error}", "where": "", "remedy": ""}
    described: dict[str, Any] = {"what": error.what, "where": error.where, "remedy": error.remedy}
    if isinstance(error, NotFiniteError):
        described["datum"] = error.datum
    return {"kind": type(error).__name__, **described}


def _rebuilt(failure: dict[str, Any], rank: int) -> TrainerError:
    kind = KINDS.get(failure.pop("kind"))
    if kind is not None:
        return kind(failure.pop("what"), **failure)
    return TrainerError(f"process {rank} of the run failed: {failure.pop('what')}", **failure)


@contextmanager
def _lost_ranks() -> Iterator[None]:
    """Put a broken connection, which torch reports in many ways, into words."""
    try:
        yield
    except RuntimeError as error:
        raise TrainerError(
            "the connection to another process of the run broke",
            where=f"process {os.environ.get('RANK', '0')}",
            remedy="Look for that process's error further up in the log, then resume the run.",
        ) from error
