"""What a run of the benchmark has measured, as plain data; no torch here."""

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tests.bench.stored import read_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTimes:
    """What was measured for a line; all but `engine_s` and the counts are ratios.

    Attributes:
        name: The line's name.
        is_one_conversation: Whether the line trains on a single conversation.
        turn_tokens: Tokens that one pass a turn computes.
        distinct_tokens: Distinct prefixes, the least that can be computed.
        computed_tokens: What the engine sent through the model.
        engine_s: Forward and backward by the engine, median of all rounds.
        times_as_fast: Baseline's time over the engine's, median of the rounds' pairs, by baseline.
        gemm_flops_per_s: Rate of the model's matrix products, median of all rounds.
        bound_flops: What `flops.pass_flops` counts.
        share_of_bound: (bound_flops / rate) / engine's time, median of the rounds' pairs.
        added_conversation: Cost of one more unit, over that of the first, median of the rounds.
    """

    name: str
    is_one_conversation: bool
    turn_tokens: int
    distinct_tokens: int
    computed_tokens: int
    engine_s: float
    times_as_fast: dict[str, float]
    gemm_flops_per_s: float
    bound_flops: int
    share_of_bound: float
    added_conversation: float

    @property
    def token_s(self) -> float:
        """The engine's time for each distinct token."""
        return self.engine_s / self.distinct_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where it was measured.

    Attributes:
        processor: Its name, as far as the system tells.
        cores: How many this process may use.
        torch_threads: How many torch used.
        torch: torch's version.
    """

    processor: str
    cores: int
    torch_threads: int
    torch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that was measured.

    Attributes:
        machine: Where.
        rows: The lines of the table.
        peak_bytes: Peak memory of a fresh process, by the case's name.
    """

    machine: Machine
    rows: tuple[RowTimes, ...]
    peak_bytes: dict[str, int]

    def row(self, name: str) -> RowTimes | None:
        """Return the line of that name, None if it was not measured."""
        return next((row for row in self.rows if row.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned; keys that stand beside it are passed over."""
        return cls(
            machine=read_figures(Machine, data["machine"]),
            rows=tuple(read_figures(RowTimes, row) for row in data["rows"]),
            peak_bytes=data["peak_bytes"],
        )


def processor_name() -> str:
    """Return the processor's name; only Linux tells it in a file."""
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if platform.system() == "Linux" else os.cpu_count() or 1
