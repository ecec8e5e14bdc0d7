"""A recorder that several ranks hold together: one of them writes, all hear whether to stop."""

from collections.abc import Sequence

from db.records import StepMetric, TurnMetric
from trainer.engine.ranks import Ranks
from trainer.runs.recorder import Recorder


class SharedRecorder:
    """Passes to the leader's recorder what each rank reports, once.

    Its calls are meetings of the ranks: all make the same ones in the same order, so that a stop
    request reaches them at the same place, and a full disk ends them all.
    """

    def __init__(self, recorder: Recorder, ranks: Ranks) -> None:
        """Share the leader's recorder; on the other ranks `recorder` is never called."""
        self._recorder = recorder
        self._ranks = ranks

    def turns(self, rows: Sequence[TurnMetric]) -> None:
        """Record turns that have just been through the model."""
        self._ranks.lead(lambda: self._recorder.turns(rows))

    def step(self, row: StepMetric) -> None:
        """Record an optimiser step."""
        self._ranks.lead(lambda: self._recorder.step(row))

    def settle(self) -> None:
        """See that what was recorded survives a power cut."""
        self._ranks.lead(self._recorder.settle)

    def rewind(self, step: int) -> None:
        """Forget everything after an optimiser step."""
        self._ranks.lead(lambda: self._recorder.rewind(step))

    def progress(self, share: float, message: str) -> bool:
        """Say how far the run is; return, on every rank, whether the leader has to stop."""
        return self._ranks.lead(lambda: self._recorder.progress(share, message))

    def note(self, text: str) -> None:
        """Put something worth knowing into the log."""
        self._ranks.lead(lambda: self._recorder.note(text))
