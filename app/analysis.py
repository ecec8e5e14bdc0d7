"""What agreement and insight show, added up once for as long as nothing changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from nltk.metrics.agreement import AnnotationTask

from app import auth, data
from app.near_duplicates import Search, find_near_duplicates
from db.records import ConversationFilter
from db.records.agreement import RaterPair, RatersOfTurns, Rating, SpreadCount
from db.records.insight import Insight

ALPHA_TURNS = 5000
"""From more turns than this, alpha is estimated on a chance sample: it is within about 0.01."""

_KEPT_S = 3600.0

LAG_S = 30.0
"""For so long others' new scores may stay unseen: with many raters at work something changes all
the time, and adding ten thousand conversations up takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far people agree.

    Attributes:
        alpha: Krippendorff's alpha for interval data; None where it is not defined.
        alpha_turns: From how many turns it was computed.
        coverage: How many turns have been scored by so many people.
        spreads: How many shared turns have each spread.
        pairs: Each two people on the turns that both scored.
    """

    alpha: float | None
    alpha_turns: int
    coverage: tuple[RatersOfTurns, ...]
    spreads: tuple[SpreadCount, ...]
    pairs: tuple[RaterPair, ...]

    @property
    def turns(self) -> int:
        """All assistant turns."""
        return sum(row.turns for row in self.coverage)

    @property
    def shared(self) -> int:
        """Turns that more than one person scored."""
        return sum(row.turns for row in self.spreads)

    @property
    def median_spread(self) -> float:
        """The spread that half of the shared turns do not pass, from 0 to 2."""
        half, seen = self.shared / 2, 0
        for row in self.spreads:
            seen += row.turns
            if seen >= half:
                return row.spread
        return 0.0


def agreement() -> Agreement:
    """Return how far people agree now."""
    return _agreement(*_state())


def insight() -> Insight:
    """Return what the scores say now."""
    return _insight(*_state())


def near_duplicates(threshold: float) -> Search:
    """Return the conversations that are at least so much alike, 0 to 1; newest compared first."""
    return _near_duplicates(threshold, data.settings().database_url, data.data_version())


def krippendorff_alpha(ratings: Sequence[Rating]) -> float | None:
    """Return Krippendorff's alpha for interval data, 1 for full agreement, 0 for chance.

    None where it is not defined: no turn has two scores, or all scores are the same. (Krippendorff,
    Content Analysis, 4th edition, chapter 12.)
    """
    raters: dict[int, int] = {}
    for rating in ratings:
        raters[rating.message_id] = raters.get(rating.message_id, 0) + 1
    shared = [rating for rating in ratings if raters[rating.message_id] > 1]
    values = [round(rating.value, 2) for rating in shared]  # the time grows with their variety
    if len(set(values)) < 2:
        return None
    triples = [(r.user_id, r.message_id, v) for r, v in zip(shared, values, strict=True)]
    return AnnotationTask(triples, distance=_interval).alpha()


def _state() -> tuple[str, tuple[int, ...]]:
    """Return which database it is, and a version of what is in it, at most `LAG_S` old."""
    address = data.settings().database_url
    return address, _version(address)


@st.cache_data(ttl=LAG_S, max_entries=8, show_spinner=False)
def _version(address: str) -> tuple[int, ...]:
    del address  # the cache's key
    return data.data_version()


def _interval(one: float, other: float) -> float:
    return (one - other) ** 2


@st.cache_data(ttl=_KEPT_S, max_entries=4, show_spinner="Comparing raters…")
def _agreement(address: str, version: tuple[int, ...]) -> Agreement:
    del address, version  # the cache's key: other data are other figures
    figures = data.agreement_figures(sample_turns=ALPHA_TURNS)
    return Agreement(
        alpha=krippendorff_alpha(figures.ratings),
        alpha_turns=len({rating.message_id for rating in figures.ratings}),
        coverage=figures.coverage,
        spreads=figures.spreads,
        pairs=figures.pairs,
    )


@st.cache_data(ttl=_KEPT_S, max_entries=4, show_spinner="Adding up the scores…")
def _insight(address: str, version: tuple[int, ...]) -> Insight:
    del address, version
    return data.insight()


@st.cache_data(ttl=_KEPT_S, max_entries=4, show_spinner="Comparing conversations…")
def _near_duplicates(threshold: float, address: str, version: tuple[int, ...]) -> Search:
    del address, version
    newest = ConversationFilter(order="newest")
    ids = data.conversation_ids(newest, user_id=auth.current_user().id)
    return find_near_duplicates(ids, data.texts, threshold=threshold)
