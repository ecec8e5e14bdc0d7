"""What all scores together say: agreement, insight, and the turns that people disagree on."""

from collections.abc import Sequence

from app.connection import database
from app.data.reading import read
from db import queries
from db.records.agreement import AgreementFigures, SharedTurn
from db.records.insight import Insight


def data_version() -> tuple[int, ...]:
    """Return numbers that change with everything that agreement and insight are made of."""
    return read(queries.data_version)


def agreement_figures(*, sample_turns: int) -> AgreementFigures:
    """Return what agreement is told by; not cached: `app.analysis` keeps what it makes of it."""
    return queries.agreement_figures(database(), sample_turns=sample_turns)


def insight() -> Insight:
    """Return what all scores together say; not cached: `app.analysis` keeps it."""
    return queries.insight_figures(database())


def texts(ids: Sequence[int]) -> dict[int, str]:
    """Return all that is said in each of some conversations; not cached: it may be much."""
    return queries.texts(database(), ids)


def count_shared_turns(*, least_spread: float, undecided: bool) -> int:
    """Return how many turns several people scored, at least so far apart."""
    return read(queries.count_shared_turns, least_spread=least_spread, undecided=undecided)


def shared_turns(*, least_spread: float, undecided: bool, limit: int) -> list[SharedTurn]:
    """Return the turns that people disagree on, those with the widest spread first."""
    return read(queries.shared_turns, least_spread=least_spread, undecided=undecided, limit=limit)
