"""The chain of runs that started from each other, with the figures of each round. No torch."""

from collections.abc import Sequence
from dataclasses import replace

from db import queries
from db.engine import Database
from db.errors import NotFoundError
from db.records import Round, Run
from trainer.runs.checkpoint import Judgement
from trainer.runs.folder import RunFolder, read_lines


def ancestors_of(database: Database, parent_id: int | None) -> tuple[Round, ...]:
    """Return the rounds that a run which starts from `parent_id` has before it, oldest first.

    What is returned is kept with the new run, so that its chain stays readable when a run of it is
    deleted.

    Raises:
        NotFoundError: if the parent does not exist.
    """
    if parent_id is None:
        return ()
    return chain_of(database, parent_id)


def chain_of(database: Database, run_id: int) -> tuple[Round, ...]:
    """Return the chain of a run, see `chain`.

    Raises:
        NotFoundError: if the run does not exist (any more).
    """
    return chain(database, queries.run(database, run_id))


def chain(database: Database, run: Run) -> tuple[Round, ...]:
    """Return all rounds up to and with a run, oldest first; runs that are gone as they once stood."""
    before = (_now(database, round) for round in queries.ancestors(database, run.id))
    return (*before, _round(database, run))


def _now(database: Database, known: Round) -> Round:
    """Return a round with today's figures, or with those that were kept if its run is gone."""
    try:
        return _round(database, queries.run(database, known.run_id))
    except NotFoundError:
        return replace(known, is_there=False)


def _round(database: Database, run: Run) -> Round:
    folder = RunFolder(database.settings.run_dir(run.id))
    return Round(
        run_id=run.id,
        name=run.name,
        mean_score=queries.mean_score(database, run.id),
        held_out=kept_signal(judgements(folder)),
        kl_base=queries.last_kl_base(database, run.id),
    )


def judgements(folder: RunFolder) -> list[Judgement]:
    """Return what the held-out conversations said of each epoch so far; empty without any."""
    return read_lines(folder.held_out, Judgement)


def kept_signal(judged: Sequence[Judgement]) -> float | None:
    """Return how the adapter that is kept did: the best, or the last where none was an advance."""
    if not judged:
        return None
    best = max(judgement.signal for judgement in judged)
    return best if best > 0 else judged[-1].signal
