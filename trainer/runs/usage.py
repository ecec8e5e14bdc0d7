"""How busy a run keeps the machine: its share of the CPU's cores, and of the GPU's time."""

import os
from dataclasses import dataclass, field
from statistics import fmean

import psutil
import pynvml


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Shares between two readings, 0 to 100; None where there is nothing to measure."""

    cpu_percent: float | None
    gpu_percent: float | None


@dataclass(slots=True)
class Meter:
    """Measures this process from its making on.

    Args:
        device: "cpu" or "cuda": only with "cuda" is there a GPU to look at.
    """

    device: str
    _process: psutil.Process = field(default_factory=psutil.Process, init=False)
    _gpu: object | None = field(default=None, init=False)
    _seen: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Begin to measure."""
        self._process.cpu_percent()
        self._gpu = first_gpu() if self.device == "cuda" else None

    def look(self) -> None:
        """Look how busy the GPU is just now; to be called about once a second."""
        if self._gpu is not None:
            self._seen.append(float(pynvml.nvmlDeviceGetUtilizationRates(self._gpu).gpu))

    def read(self) -> Usage:
        """Return the shares since the last reading."""
        cores = psutil.cpu_count() or 1
        seen, self._seen = self._seen, []
        return Usage(
            cpu_percent=min(self._process.cpu_percent() / cores, 100.0),
            gpu_percent=fmean(seen) if seen else None,
        )


def first_gpu() -> object | None:
    """Return NVML's handle of the GPU that CUDA calls the first, None where there is none."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    try:
        pynvml.nvmlInit()
        if visible.isdigit():
            return pynvml.nvmlDeviceGetHandleByIndex(int(visible))
        return pynvml.nvmlDeviceGetHandleByUUID(visible)
    except pynvml.NVMLError:
        return None
