"""A line's times: engine, baselines and GEMM in turn in one process, so that drift hits all alike."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from peft import PeftModel

from db.settings import Settings
from tests.bench.baselines import BASELINES, Baseline, load_plain, thinned
from tests.bench.flops import ModelShape, PassWork, pass_flops
from tests.bench.gemm import gemm_rate
from tests.bench.results import RowTimes
from tests.bench.workloads import Row
from trainer.catalog import model_folder
from trainer.config import EMBEDDED_MODEL, Preset, TrainConfig
from trainer.engine.client import ServiceClient, TrainingClient
from trainer.engine.types import Datum

CONFIG = TrainConfig.for_preset(Preset.STANDARD)
"""The engine runs as it does for people who change no setting."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """GEMM rate, engine and one baseline, measured one after the other."""

    baseline: str
    rate: float
    engine_s: float
    baseline_s: float


@dataclass(frozen=True, slots=True)
class Contestants:
    """The engine, and plain transformers and peft with the same weights."""

    client: TrainingClient
    plain: PeftModel
    shape: ModelShape

    @classmethod
    def load(cls, settings: Settings) -> Self:
        """Load the embedded model twice, under one adapter."""
        client = load_client(settings)
        with tempfile.TemporaryDirectory() as scratch:
            adapter = client.save_weights_for_sampler(str(Path(scratch) / "adapter")).result().path
            plain = load_plain(model_folder(settings, EMBEDDED_MODEL), Path(adapter))
        return cls(client, plain, ModelShape.of(plain))

    def measure(self, row: Row) -> RowTimes:
        """Time one line of the table."""
        data = row.data()
        work = PassWork.distinct(data)
        flops = pass_flops(self.shape, work)
        before = self.client.computed_tokens
        self._engine(data)  # warm-up, and the count
        computed = self.client.computed_tokens - before
        pairs = [
            self._pair(name, row, data, min(work.tokens, CONFIG.token_budget))
            for _ in range(row.rounds)
            for name in BASELINES
        ]
        return RowTimes(
            name=row.name,
            is_one_conversation=len(row.unit) * row.copies == 1,
            turn_tokens=sum(datum.model_input.length for datum in data),
            distinct_tokens=work.tokens,
            computed_tokens=computed,
            engine_s=statistics.median(pair.engine_s for pair in pairs),
            times_as_fast={
                name: statistics.median(
                    pair.baseline_s / pair.engine_s for pair in pairs if pair.baseline == name
                )
                for name in BASELINES
            },
            gemm_flops_per_s=statistics.median(pair.rate for pair in pairs),
            bound_flops=flops,
            share_of_bound=statistics.median(flops / pair.rate / pair.engine_s for pair in pairs),
            added_conversation=self._added_conversation(row),
        )

    def warm_up(self, row: Row) -> None:
        """Let every way run once, so that the first line does not pay for the first use."""
        data = row.data()
        self._engine(data)
        for baseline in BASELINES.values():
            self._baseline_s(baseline, row, data)

    def _pair(self, name: str, row: Row, data: Sequence[Datum], tokens: int) -> _Pair:
        return _Pair(
            baseline=name,
            rate=gemm_rate(self.shape, tokens),
            engine_s=seconds(lambda: self._engine(data)),
            baseline_s=self._baseline_s(BASELINES[name], row, data),
        )

    def _engine(self, data: Sequence[Datum]) -> None:
        self.client.forward_backward(data, "ppo").result()

    def _baseline_s(self, baseline: Baseline, row: Row, data: Sequence[Datum]) -> float:
        passes = thinned(baseline.split(data, CONFIG.token_budget), row.thinning)
        self.plain.zero_grad()
        total_s = 0.0
        for plain_pass in passes:
            turns = plain_pass.data
            total_s += plain_pass.stands_for * seconds(lambda: baseline.run(self.plain, turns))  # noqa: B023 - called at once
        return total_s

    def _added_conversation(self, row: Row) -> float:
        alone, together = row.data(1), row.data(row.added)
        costs = []
        for _ in range(row.rounds):
            alone_s = seconds(lambda: self._engine(alone))
            together_s = seconds(lambda: self._engine(together))
            costs.append((together_s - alone_s) / (row.added - 1) / alone_s)
        return statistics.median(costs)


def load_client(settings: Settings) -> TrainingClient:
    """Return the engine on the embedded model with the settings of a run."""
    return ServiceClient(device="cpu", settings=settings).create_lora_training_client(
        EMBEDDED_MODEL,
        rank=CONFIG.lora_rank,
        alpha=CONFIG.lora_alpha,
        seed=CONFIG.seed,
        token_budget=CONFIG.token_budget,
    )


def seconds(work: Callable[[], None]) -> float:
    """Return the wall time of a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
