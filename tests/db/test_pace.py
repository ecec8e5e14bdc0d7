"""How a person's work goes: counted since a moment, and timed by the latest scores."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from db import commands, queries
from db.engine import Database
from db.models import EventTable, now
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import rater_id, scored_talk

pytestmark = ON_EVERY_DATABASE


def score_at(database: Database, user_id: int, *moments: datetime) -> None:
    """Score one turn after the other, each at its moment."""
    talk = scored_talk(*((f"reply {number}", None) for number in range(len(moments))))
    id = commands.add_conversation(database, talk)
    turns = queries.own_turns(database, user_id=user_id, conversation_id=id)
    for turn, at in zip(turns, moments, strict=True):
        event = commands.set_score(database, user_id=user_id, message_id=turn.message_id, value=0.5)
        assert event is not None
        with database.session() as session:
            session.execute(update(EventTable).where(EventTable.id == event.id).values(at=at))


def after(start: datetime, *seconds: float) -> list[datetime]:
    return [start + timedelta(seconds=second) for second in seconds]


def test_the_time_of_a_turn_is_the_median_of_the_latest_with_pauses_left_out(
    database: Database, user_id: int
) -> None:
    start = now() - timedelta(hours=2)
    score_at(database, user_id, *after(start, 0, 4, 8, 1208, 1211, 1220, 1226))
    pace = queries.pace(database, user_id=user_id, since=start)
    assert pace.scored == 7
    assert pace.seconds_per_turn == pytest.approx(4.0)  # 4, 4, a pause of 20 min, 3, 9, 6


def test_five_times_between_scores_are_the_fewest_that_tell_a_pace(
    database: Database, user_id: int
) -> None:
    start = now() - timedelta(minutes=5)
    score_at(database, user_id, *after(start, 0, 5, 10, 15, 20))
    assert queries.pace(database, user_id=user_id, since=start).seconds_per_turn is None
    score_at(database, user_id, *after(start, 25))
    assert queries.pace(database, user_id=user_id, since=start).seconds_per_turn == 5.0


def test_only_what_one_scored_oneself_since_then_is_counted(
    database: Database, user_id: int
) -> None:
    start = now() - timedelta(hours=30)
    score_at(database, user_id, *after(start, 0, 2))
    ann = rater_id(database, "ann")
    score_at(database, ann, *after(now() - timedelta(minutes=1), 0, 1, 2, 3, 4, 5, 6))
    score_at(database, user_id, now() - timedelta(minutes=1))
    commands.undo(database, user_id=user_id)
    commands.redo(database, user_id=user_id)
    pace = queries.pace(database, user_id=user_id, since=now() - timedelta(hours=1))
    assert (pace.scored, pace.seconds_per_turn) == (1, None)
