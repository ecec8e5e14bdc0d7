"""Decided scores: beside those of raters, logged, undoable by who decided, frozen with the data."""

from dataclasses import replace

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import Role
from db.errors import DataError, NotFoundError
from db.formats import parse, write
from db.records import Score
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import rated_talk, rater_id, talk

pytestmark = ON_EVERY_DATABASE


@pytest.fixture
def conversation_id(database: Database) -> int:
    """A conversation whose one reply Anna and Ben scored."""
    return commands.add_conversation(database, rated_talk({"anna": 0.9, "ben": 0.1}))


def reply_id(database: Database, conversation_id: int) -> int:
    id = queries.conversation(database, conversation_id).messages[1].id
    assert id is not None
    return id


def decided(database: Database, conversation_id: int) -> tuple[str, float, str] | None:
    score = queries.conversation(database, conversation_id).messages[1].adjudicated
    return None if score is None else (score.rater, score.value, score.note)


def test_a_decision_stands_beside_the_raters_scores(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    event = commands.adjudicate(
        database, user_id=user_id, message_id=message_id, value=0.0, note="rude"
    )
    assert event is not None
    assert (event.old_value, event.new_value, event.adjudicates) == (None, 0.0, True)
    assert decided(database, conversation_id) == ("local", 0.0, "rude")
    scores = queries.conversation(database, conversation_id).messages[1].scores
    assert [(s.rater, s.value) for s in scores] == [("anna", 0.9), ("ben", 0.1)]
    assert queries.score_events(database)[0] == event


def test_what_changes_nothing_is_not_logged(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    assert commands.adjudicate(database, user_id=user_id, message_id=message_id, value=None) is None
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.4)
    before = queries.score_events(database)
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.4)
    assert queries.score_events(database) == before


def test_undo_goes_back_decision_by_decision_and_leaves_scores_alone(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    commands.set_score(database, user_id=user_id, message_id=message_id, value=1.0)
    for value, note in ((0.2, "first"), (0.6, "second")):
        commands.adjudicate(
            database, user_id=user_id, message_id=message_id, value=value, note=note
        )
    assert commands.undo_adjudication(database, user_id=user_id) is not None
    assert decided(database, conversation_id) == ("local", 0.2, "first")
    assert commands.undo_adjudication(database, user_id=user_id) is not None
    assert decided(database, conversation_id) is None
    assert commands.undo_adjudication(database, user_id=user_id) is None
    told = [(c.new_value, c.is_undo, c.is_redo) for c in queries.turn_history(database, message_id)]
    undone = [(None, True, False), (0.2, True, False)]
    assert told[:4] == [*undone, (0.6, False, False), (0.2, False, False)]
    scores = queries.conversation(database, conversation_id).messages[1].scores
    assert ("local", 1.0) in [(s.rater, s.value) for s in scores]


def test_redo_decides_again_what_undo_took_back_until_something_new_is_decided(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    assert commands.redo_adjudication(database, user_id=user_id) is None
    for value, note in ((0.2, "first"), (None, ""), (0.6, "second")):
        commands.adjudicate(
            database, user_id=user_id, message_id=message_id, value=value, note=note
        )
    states = [("local", 0.6, "second"), None, ("local", 0.2, "first"), None]
    for after in states[1:]:
        commands.undo_adjudication(database, user_id=user_id)
        assert decided(database, conversation_id) == after
    for after in states[-2::-1]:
        assert commands.redo_adjudication(database, user_id=user_id) is not None
        assert decided(database, conversation_id) == after
    assert commands.redo_adjudication(database, user_id=user_id) is None
    latest = queries.turn_history(database, message_id)[0]
    assert (latest.new_value, latest.is_undo, latest.is_redo) == (0.6, False, True)
    commands.undo_adjudication(database, user_id=user_id)
    commands.set_score(database, user_id=user_id, message_id=message_id, value=1.0)
    commands.redo_adjudication(database, user_id=user_id)  # a score is no decision
    assert decided(database, conversation_id) == states[0]
    commands.undo_adjudication(database, user_id=user_id)
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.9)
    assert commands.redo_adjudication(database, user_id=user_id) is None
    assert decided(database, conversation_id) == ("local", 0.9, "")


def test_a_decision_that_went_with_the_text_it_was_made_for_stays_away(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    for value in (0.2, 0.6):
        commands.adjudicate(database, user_id=user_id, message_id=message_id, value=value)
    told = queries.conversation(database, conversation_id)
    asked, reply = told.messages
    edited = replace(told, messages=(asked, replace(reply, content="another reply")))
    commands.update_conversation(database, conversation_id, edited, keep_scores=False)
    assert commands.undo_adjudication(database, user_id=user_id) is None
    assert decided(database, conversation_id) is None


def test_undoing_a_score_leaves_decisions_alone(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.4)
    commands.undo(database, user_id=user_id)
    assert decided(database, conversation_id) == ("local", 0.4, "")


def test_a_decision_that_somebody_else_made_anew_is_no_longer_ones_own_to_undo(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    other = rater_id(database, "ben")
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.4)
    commands.adjudicate(database, user_id=other, message_id=message_id, value=0.8)
    assert commands.undo_adjudication(database, user_id=user_id) is None
    assert decided(database, conversation_id) == ("ben", 0.8, "")
    commands.undo_adjudication(database, user_id=other)
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.5)
    assert commands.redo_adjudication(database, user_id=other) is None
    assert decided(database, conversation_id) == ("local", 0.5, "")


@pytest.mark.parametrize("value", [1.5, float("nan"), True])
def test_what_is_no_score_is_refused(
    database: Database, user_id: int, conversation_id: int, value: float
) -> None:
    message_id = reply_id(database, conversation_id)
    with pytest.raises(DataError):
        commands.adjudicate(database, user_id=user_id, message_id=message_id, value=value)
    assert decided(database, conversation_id) is None


def test_only_replies_that_are_there_can_be_decided(database: Database, user_id: int) -> None:
    id = commands.add_conversation(database, talk("q", "a"))
    asked = queries.conversation(database, id).messages[0]
    assert asked.role is Role.USER and asked.id is not None
    with pytest.raises(DataError, match="user message"):
        commands.adjudicate(database, user_id=user_id, message_id=asked.id, value=0.5)
    with pytest.raises(NotFoundError):
        commands.adjudicate(database, user_id=user_id, message_id=999_999, value=0.5)


def test_a_decision_goes_with_its_conversation_through_a_file_and_into_another_database(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    commands.adjudicate(
        database, user_id=user_id, message_id=message_id, value=-0.25, note="unsafe"
    )
    text = write(queries.conversations(database, [conversation_id]), "native")
    commands.delete_conversations(database, [conversation_id])
    (again,), _ = commands.add_conversations(database, parse(text.encode()).conversations)
    assert decided(database, again) == ("local", -0.25, "unsafe")
    assert commands.undo_adjudication(database, user_id=user_id) is None  # it arrived so


def test_a_copy_starts_without_a_decision(
    database: Database, user_id: int, conversation_id: int
) -> None:
    message_id = reply_id(database, conversation_id)
    commands.adjudicate(database, user_id=user_id, message_id=message_id, value=0.4)
    copy = commands.duplicate_conversation(database, conversation_id)
    assert decided(database, copy) is None


def test_a_message_that_is_no_reply_carries_no_decision(database: Database) -> None:
    conversation = rated_talk({})
    wrong = conversation.messages[0].__class__(
        role=Role.USER, content="q", adjudicated=Score(rater="anna", value=1.0)
    )
    with pytest.raises(DataError, match="carries a score"):
        commands.add_conversation(
            database, conversation.__class__(messages=(wrong, conversation.messages[1]))
        )
