"""What a process that computes must be started with, since C libraries read it only once."""

import os
import sys

COMPUTE_ENVIRONMENT = {
    "GOMP_SPINCOUNT": "10000",
    "THP_MEM_ALLOC_ENABLE": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**22),
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
}
"""What the environment may override.

Threads that wait spin for some 20 µs, the time between two steps of a pass, and then sleep: to spin
on takes the core away from other programs, and to sleep at once costs small passes a fifth of their
speed. Tensors of 4 MiB and more are mapped and handed back one by one, in huge pages where the system
has them; smaller ones stay in the heap. With all of them in the heap each pass lay a little worse
than the one before, and with smaller ones mapped a tenth of the time went into page faults. What
torch and glibc do not know they ignore. Figures: docs/performance.md.
"""


def restart_with_compute_environment() -> None:
    """Replace this process by the same command in that environment, unless it is there already."""
    missing = {k: v for k, v in COMPUTE_ENVIRONMENT.items() if k not in os.environ}
    if missing and sys.platform == "linux":
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **missing})
