"""How busy a run keeps the machine, measured where there is something to measure."""

import time

import pynvml
import pytest

from trainer.runs import usage
from trainer.runs.usage import Meter


def test_a_process_that_computes_is_seen_to() -> None:
    meter = Meter("cpu")
    meter.read()
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    found = meter.read()
    assert found.cpu_percent is not None and 0 < found.cpu_percent <= 100
    assert found.gpu_percent is None


def test_the_gpu_is_asked_by_the_number_or_name_that_cuda_goes_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against a stand-in of the driver, which this machine need not have."""
    busy = iter([20, 60])
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: f"gpu {index}")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lambda name: f"named {name}")

    def rates(handle: object) -> pynvml.c_nvmlUtilization_t:
        assert handle == "gpu 2"
        return pynvml.c_nvmlUtilization_t(gpu=next(busy), memory=0)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", rates)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    meter = Meter("cuda")
    meter.look()
    meter.look()
    assert meter.read().gpu_percent == 40
    assert meter.read().gpu_percent is None  # nobody has looked since
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-12ab")
    assert usage.first_gpu() == "named GPU-12ab"


def test_without_a_driver_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    assert usage.first_gpu() is None
    meter = Meter("cuda")
    meter.look()
    assert meter.read().gpu_percent is None
