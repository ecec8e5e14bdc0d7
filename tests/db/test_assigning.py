"""Sharing conversations out among raters."""

from collections import Counter

from db import commands, queries
from db.engine import Database
from db.enums import ReviewState
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import rated_talk, rater_id, talk

pytestmark = ON_EVERY_DATABASE


def add(database: Database, count: int) -> list[int]:
    return [commands.add_conversation(database, talk(f"q{n}", "a")) for n in range(count)]


def test_asking_twice_is_asking_once(database: Database) -> None:
    ids, anna = add(database, 2), rater_id(database, "anna")
    assert commands.assign(database, ids, [anna]) == 2
    assert commands.assign(database, ids, [anna]) == 0
    assert queries.assigned_names(database, ids) == {ids[0]: ("anna",), ids[1]: ("anna",)}
    assert commands.unassign(database, [ids[0]], [anna]) == 1
    assert queries.assigned_names(database, ids) == {ids[0]: (), ids[1]: ("anna",)}


def test_what_is_gone_is_passed_over(database: Database) -> None:
    ids, anna = add(database, 1), rater_id(database, "anna")
    assert commands.assign(database, [*ids, 999_999], [anna, 999_999]) == 1


def test_each_conversation_gets_its_raters_and_people_get_equally_many(database: Database) -> None:
    ids = add(database, 9)
    people = [rater_id(database, name) for name in ("anna", "ben", "cara")]
    assert commands.distribute(database, ids, people, raters=2) == 18
    names = queries.assigned_names(database, ids)
    assert all(len(set(asked)) == 2 for asked in names.values())
    assert set(Counter(name for asked in names.values() for name in asked).values()) == {6}
    assert commands.distribute(database, ids, people, raters=2) == 0


def test_those_who_have_scored_it_count_and_are_not_asked_again(database: Database) -> None:
    id = commands.add_conversation(database, rated_talk({"anna": 0.5}))
    people = [rater_id(database, name) for name in ("anna", "ben")]
    assert commands.distribute(database, [id], people, raters=2) == 1
    assert queries.assigned_names(database, [id]) == {id: ("ben",)}


def test_more_raters_than_people_asks_everybody_once(database: Database) -> None:
    ids, anna = add(database, 1), rater_id(database, "anna")
    assert commands.distribute(database, ids, [anna], raters=5) == 1


def test_workloads_tell_what_was_asked_and_handled_without_the_archive(database: Database) -> None:
    ids, anna = add(database, 3), rater_id(database, "anna")
    commands.assign(database, ids, [anna])
    commands.set_review(database, user_id=anna, conversation_id=ids[0], state=ReviewState.DONE)
    commands.set_archived(database, [ids[2]], True)
    (load,) = queries.workloads(database)
    assert (load.rater, load.assigned, load.handled) == ("anna", 2, 1)


def test_deleting_a_conversation_takes_its_assignments_along(database: Database) -> None:
    ids, anna = add(database, 1), rater_id(database, "anna")
    commands.assign(database, ids, [anna])
    commands.delete_conversations(database, ids)
    assert queries.workloads(database) == []
