"""The rounds that led to a run: which run started from which, and what came of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run in a chain of runs that start from each other, with its figures.

    Attributes:
        run_id: The run; it may be deleted by now.
        name: What people call, or called, it.
        mean_score: Mean score of the turns that it was trained on, None where none had a score.
        held_out: How far held-out replies moved as their scores ask, in nats a token, under the
            adapter that was kept; None where none were held out.
        kl_base: Mean KL to the base model in its last step, in nats a token; None if not measured.
        is_there: Whether the run still exists.
    """

    run_id: int
    name: str
    mean_score: float | None = None
    held_out: float | None = None
    kl_base: float | None = None
    is_there: bool = True
