"""Several runs side by side: which settings differ, how each ended, what each model now says."""

from collections.abc import Sequence
from dataclasses import dataclass

from app import run_files
from app.components.charts import signed
from app.components.config_form import display, label_of
from app.components.learning import Movement, last_epoch, of_epoch
from app.components.run_status import duration, run_time_s
from app.metrics import RunMetrics, run_metrics
from app.run_files import Sample
from db.records import Run
from trainer.runs.checkpoint import Judgement

GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run with everything that the comparison shows of it."""

    run: Run
    metrics: RunMetrics
    judgements: Sequence[Judgement]
    samples: Sequence[Sample]

    @property
    def label(self) -> str:
        """Its name and number: two runs may be named alike."""
        return f"{self.run.name} ({self.run.id})"


def compared(run: Run) -> ComparedRun:
    """Read what the comparison shows of a run."""
    return ComparedRun(
        run=run,
        metrics=run_metrics(run),
        judgements=run_files.judgements(run),
        samples=run_files.samples(run),
    )


def differences(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """Return (what, value in each run) of everything in which the runs differ.

    A setting that a run of another version does not have is shown as a dash.
    """
    rows: list[tuple[str, list[str]]] = []
    names = dict.fromkeys(name for run in runs for name in run.config)
    for name in names:
        values = [_shown(run.config.get(name)) for run in runs]
        if len(set(values)) > 1:
            rows.append((_label(name), values))
    if len({run.snapshot_sha256 for run in runs}) > 1:
        data = [f"{run.conversations} conversations, {run.turns} turns" for run in runs]
        alike = len(set(data)) == 1
        rows.append(("Data", [f"{text}{' (another copy)' * alike}" for text in data]))
    return rows


def final_figures(run: ComparedRun) -> dict[str, str]:
    """Return how a run ended, or stands: what it learned, how far it moved, what it cost."""
    metrics = run.metrics
    epoch = last_epoch(metrics.cells)
    moved = of_epoch(metrics.cells, epoch) if epoch else Movement()
    best = max((one.signal for one in run.judgements), default=None)
    spent = run_time_s(run.run)
    memory = _last(metrics, "memory_bytes")
    return {
        "state": run.run.status.value,
        "epochs": str(epoch + 1) if metrics.first else "–",
        "steps": "–" if metrics.last_step is None else f"{metrics.last_step + 1:,}",
        "learning: change × advantage (nats per token)": signed(metrics.signal),
        "change of replies to favour (nats per token)": signed(moved.favour_change),
        "change of replies to avoid (nats per token)": signed(moved.avoid_change),
        "best on held-out conversations (nats per token)": signed(best),
        "KL to the old policy (nats per token)": _number(_last(metrics, "kl"), 4),
        "KL to the base model (nats per token)": _number(_last(metrics, "kl_base"), 4),
        "speed (tokens per second)": _number(_last(metrics, "tokens_per_s"), 0),
        "most memory (GB)": "–" if memory is None else f"{memory / GB:.2f}",
        "time": "–" if spent is None else duration(spent),
    }


def common_prompts(runs: Sequence[ComparedRun]) -> list[tuple[Sample, list[str | None]]]:
    """Return each opening that any run answered, and every run's answer after training.

    The first element is the sample as the first run with that opening made it: its `before` is
    the base model's answer. None stands for a run that did not answer it (yet).
    """
    first: dict[tuple[tuple[str, str], ...], Sample] = {}
    for run in runs:
        for sample in run.samples:
            first.setdefault(sample.prompt, sample)
    return [
        (
            sample,
            [next((s.after for s in run.samples if s.prompt == prompt), None) for run in runs],
        )
        for prompt, sample in first.items()
    ]


def _label(name: str) -> str:
    try:
        return label_of(name)
    except KeyError:  # a setting of another version of the product
        return name


def _shown(value: object) -> str:
    return display(value) if isinstance(value, str | int | float) else "–"


def _last(metrics: RunMetrics, name: str) -> float | None:
    points = metrics.steps[name]
    return points[name].tolist()[-1] if len(points) else None


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
