# pyright: reportAttributeAccessIssue=false
# (the message types are made when their modules are loaded)
"""A run's figures as TensorBoard reads them: `tensorboard --logdir EVERYTURN_HOME/runs`."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from secrets import token_hex

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary

from db.records import StepMetric, TurnMetric

STEP_FIGURES = (
    *("loss", "grad_norm", "lr", "kl", "kl_base"),
    *("tokens_per_s", "memory_bytes", "seconds", "cpu_percent", "gpu_percent"),
)
TURN_FIGURES = ("loss_mean", "ratio_mean", "clipfrac", "logprob_mean")


class EventFile:
    """One event file in a folder, begun with the first step that is written to it.

    Each attempt of a run has its own; what an earlier one wrote behind the step at which the new
    one goes on is marked as void.
    """

    def __init__(self, folder: Path) -> None:
        """Write into `folder`, which is made when it is needed."""
        self._folder = folder
        self._writer: EventsWriter | None = None

    def add(self, step: StepMetric, turns: Sequence[TurnMetric]) -> None:
        """Write a step's figures, and the mean of its turns' by their position.

        Args:
            step: The optimiser step.
            turns: The turns that went through the model for it.
        """
        if self._writer is None:
            self._folder.mkdir(exist_ok=True)
            self._writer = EventsWriter(str(self._folder / "events"), f".{token_hex(4)}")
            start = SessionLog(status=SessionLog.START)
            self._writer.write_event(
                Event(wall_time=time.time(), step=step.step, session_log=start)
            )
        summary = Summary(
            value=[
                Summary.Value(tag=tag, simple_value=value)
                for tag, value in {**_step_figures(step), **_turn_figures(turns)}.items()
            ]
        )
        self._writer.write_event(Event(wall_time=time.time(), step=step.step, summary=summary))
        self._writer.flush()


def _step_figures(step: StepMetric) -> dict[str, float]:
    figures = asdict(step)
    values = {name: figures[name] for name in STEP_FIGURES}
    return {f"step/{name}": value for name, value in values.items() if value is not None}


def _turn_figures(turns: Sequence[TurnMetric]) -> Mapping[str, float]:
    by_tag: dict[str, list[float]] = defaultdict(list)
    for row in turns:
        figures = asdict(row)
        for name in TURN_FIGURES:
            by_tag[f"turn_{row.turn + 1}/{name}"].append(figures[name])
    return {tag: sum(values) / len(values) for tag, values in by_tag.items()}
