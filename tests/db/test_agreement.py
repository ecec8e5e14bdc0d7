"""How far raters agree, with numbers worked by hand."""

import pytest

from db import commands
from db.engine import Database
from db.queries import agreement
from db.records import Conversation
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import rated_talk, rater_id

pytestmark = ON_EVERY_DATABASE

TALKS = (
    rated_talk({"anna": 0.2, "ben": 0.9}, {"anna": 0.5}, title="apart"),
    rated_talk({"anna": 0.4, "ben": 0.4, "cara": 0.7}, {}, title="near"),
)


def add(database: Database, *talks: Conversation) -> list[int]:
    return [commands.add_conversation(database, talk) for talk in talks]


def test_turns_are_counted_by_how_many_scored_them(database: Database) -> None:
    add(database, *TALKS)
    counts = {row.raters: row.turns for row in agreement.raters_of_turns(database)}
    assert counts == {0: 1, 1: 1, 2: 1, 3: 1}


def test_spreads_come_in_twentieths(database: Database) -> None:
    add(database, *TALKS)
    assert [(row.spread, row.turns) for row in agreement.spreads(database)] == [(0.3, 1), (0.7, 1)]


def test_pairs_are_compared_on_the_turns_that_both_scored(database: Database) -> None:
    add(database, *TALKS)
    pairs = {(p.first, p.second): p for p in agreement.rater_pairs(database)}
    assert set(pairs) == {("anna", "ben"), ("anna", "cara"), ("ben", "cara")}
    both = pairs["anna", "ben"]
    assert both.turns == 2
    assert both.apart == pytest.approx(0.35)
    assert both.higher == pytest.approx(-0.35)


def test_the_furthest_apart_come_first_with_their_place_and_range(database: Database) -> None:
    ids = add(database, *TALKS)
    first, second = agreement.shared_turns(database, least_spread=0, undecided=True, limit=9)
    assert (first.title, first.conversation_id, first.turn, first.reply) == (
        "apart", ids[0], 0, "reply 1",
    )  # fmt: skip
    assert (first.low, first.high, first.raters) == (0.2, 0.9, 2)
    assert first.mean == pytest.approx(0.55)
    assert (second.title, second.raters) == ("near", 3)


def test_a_spread_on_the_line_counts_in_spite_of_rounding(database: Database) -> None:
    add(database, rated_talk({"anna": 0.7, "ben": 0.2}), rated_talk({"anna": 0.3, "ben": 0.0}))
    rows = agreement.shared_turns(database, least_spread=0.5, undecided=False, limit=9)
    assert [row.high for row in rows] == [0.7]
    assert agreement.count_shared_turns(database, least_spread=0.3, undecided=False) == 2


def test_decided_turns_leave_the_list_of_those_to_decide(database: Database, user_id: int) -> None:
    add(database, TALKS[0])
    (turn,) = agreement.shared_turns(database, least_spread=0, undecided=True, limit=9)
    commands.adjudicate(database, user_id=user_id, message_id=turn.message_id, value=0.3)
    assert agreement.count_shared_turns(database, least_spread=0, undecided=True) == 0
    (turn,) = agreement.shared_turns(database, least_spread=0, undecided=False, limit=9)
    assert turn.adjudicated == 0.3


def test_a_sample_holds_all_scores_of_its_turns_and_is_the_same_each_time(
    database: Database,
) -> None:
    add(database, *(rated_talk({"anna": 0.1 * n, "ben": 0.5, "cara": 1}) for n in range(8)))
    all_of_them = agreement.ratings_sample(database, turns=8)
    assert len(all_of_them) == 24
    some = agreement.ratings_sample(database, turns=3)
    assert len(some) == 9
    assert len({rating.message_id for rating in some}) == 3
    assert agreement.ratings_sample(database, turns=3) == some


def test_the_archive_takes_no_part(database: Database) -> None:
    ids = add(database, *TALKS)
    commands.set_archived(database, ids, True)
    assert agreement.raters_of_turns(database) == []
    assert agreement.spreads(database) == []
    assert agreement.rater_pairs(database) == []
    assert agreement.ratings_sample(database, turns=9) == []
    assert agreement.count_shared_turns(database, least_spread=0, undecided=False) == 0


def test_one_rater_alone_is_nothing_to_compare(database: Database) -> None:
    add(database, rated_talk({"anna": 0.5}))
    assert rater_id(database, "anna")
    assert agreement.spreads(database) == []
