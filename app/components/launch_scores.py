"""The launch page's question how the scores of several people on one turn become one number."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import data
from app.components.format import counted
from app.components.project_settings import AGGREGATIONS
from app.launch_again import Again
from db.enums import Aggregation
from db.records import Conversation

_NAMES = {**AGGREGATIONS, Aggregation.ONE_RATER: "One rater's scores"}


def choose_scores(conversations: Sequence[Conversation], again: Again | None) -> dict[str, Any]:
    """Ask which number a turn gets, where that is a question; return the settings that say it."""
    raters = raters_of(conversations)
    several, decided = shared_turns(conversations)
    first = again.config.aggregation if again else data.project_settings().aggregation
    if not several and not decided and first is not Aggregation.ONE_RATER:
        return {}
    names = [way.value for way in Aggregation]
    row = st.container(horizontal=True)
    name = row.selectbox(
        "Scores of several people",
        names,
        index=names.index(first),
        format_func=lambda name: _NAMES[Aggregation(name)],
        key="scores",
        bind="query-params",
        help="Which number training uses for a turn that several people scored. The table below "
        "shows at once what it does to each advantage.",
    )
    st.caption(describe(several, decided))
    if name != Aggregation.ONE_RATER or not raters:
        return {"aggregation": Aggregation.MEAN if name == Aggregation.ONE_RATER else name}
    asked = again.config.rater if again else ""
    rater = row.selectbox(
        "Rater",
        raters,
        index=raters.index(asked) if asked in raters else 0,
        key="rater",
        bind="query-params",
        help="Only this person's scores count; turns that they did not score are context.",
    )
    return {"aggregation": name, "rater": rater}


def raters_of(conversations: Sequence[Conversation]) -> list[str]:
    """Return everybody who scored something here, sorted."""
    return sorted(
        {
            score.rater
            for conversation in conversations
            for scores in (conversation.outcomes, *(m.scores for m in conversation.messages))
            for score in scores
        }
    )


def shared_turns(conversations: Sequence[Conversation]) -> tuple[int, int]:
    """Return how many turns more than one person scored, and for how many a score was decided."""
    turns = [turn for conversation in conversations for turn in conversation.assistant_messages]
    several = sum(len(turn.scores) > 1 for turn in turns)
    return several, sum(turn.adjudicated is not None for turn in turns)


def describe(several: int, decided: int) -> str:
    """Say how many turns the question concerns."""
    shared = f"{counted(several, 'turn')} with scores of more than one person"
    return f"{shared} · {decided:,} adjudicated"
