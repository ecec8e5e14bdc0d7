"""Running out of memory, told in words a person can act on; and how much was used at most."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from trainer.errors import pass_too_large

FREE_SHARE = 0.8
"""The rest is for other programs, and for what an allocator cannot use."""

CGROUP = Path("/sys/fs/cgroup")

CPU_ALLOCATION_FAILED = "DefaultCPUAllocator"
"""What torch's message contains when the operating system refuses memory on the CPU."""


@contextmanager
def memory_errors(tokens: int) -> Iterator[None]:
    """Turn an allocation failure inside the block into an `OutOfMemoryError`.

    Args:
        tokens: How many tokens are going through the model, for the message.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _is_allocation_failure(error):
            raise
        raise pass_too_large("did not fit into memory", tokens) from error


def peak_memory_bytes(device: torch.device) -> int:
    """Return the largest amount of memory in use so far: of the process, or of the CUDA device."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def memory_limit_bytes(device: torch.device) -> float:
    """Return what a pass may take: most of what is free now, with the model loaded."""
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
    else:
        free = min([psutil.virtual_memory().available, *_container_headroom()])
    return FREE_SHARE * free


def _container_headroom() -> list[int]:
    """Return what the container (Linux, cgroup 2) still allows, if it sets a limit."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        return [] if limit == "max" else [int(limit) - int((CGROUP / "memory.current").read_text())]
    except OSError:  # no container, or no Linux
        return []


def _is_allocation_failure(error: Exception) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return CPU_ALLOCATION_FAILED in str(error)
