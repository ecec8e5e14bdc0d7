"""The peak memory of one forward and backward pass in a fresh process, the model's loading included."""

from db.settings import Settings
from tests.bench.timing import load_client
from tests.bench.workloads import PEAK_CASES, build_data


def peak_bytes(settings: Settings, case: str) -> int:
    """Return this process's peak memory after it has trained on a case of `PEAK_CASES`."""
    client = load_client(settings)
    client.forward_backward(build_data(PEAK_CASES[case]), "ppo").result()
    return client.peak_memory_bytes()
