"""Scores: zero is one, clearing is none, every change can be undone and is logged."""

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ReviewState
from db.errors import DataError, NotFoundError
from db.records import Score
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import scored_talk, talk

pytestmark = ON_EVERY_DATABASE


@pytest.fixture
def reply(database: Database) -> int:
    """A reply that nobody has scored."""
    id = commands.add_conversation(database, talk("q", "a"))
    message_id = queries.conversation(database, id).messages[1].id
    assert message_id is not None
    return message_id


def stored(database: Database) -> list[tuple[float, str]]:
    (id,) = {event.conversation_id for event in queries.score_events(database)}
    conversation = queries.conversation(database, id)
    return [(s.value, s.note) for s in (*conversation.messages[1].scores, *conversation.outcomes)]


def test_zero_is_a_score_and_clearing_takes_it_away(
    database: Database, user_id: int, reply: int
) -> None:
    event = commands.set_score(database, user_id=user_id, message_id=reply, value=0)
    assert event is not None
    assert (event.old_value, event.new_value) == (None, 0.0)
    assert stored(database) == [(0.0, "")]
    assert queries.overview(database).scored_turns == 1
    commands.set_score(database, user_id=user_id, message_id=reply, value=None)
    assert stored(database) == []
    assert queries.overview(database).scored_turns == 0


def test_a_note_stays_until_it_is_replaced(database: Database, user_id: int, reply: int) -> None:
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.5, note="why")
    commands.set_score(database, user_id=user_id, message_id=reply, value=1)
    assert stored(database) == [(1.0, "why")]
    commands.set_score(database, user_id=user_id, message_id=reply, value=1, note="")
    assert stored(database) == [(1.0, "")]


def test_what_changes_nothing_is_not_logged(database: Database, user_id: int, reply: int) -> None:
    assert commands.set_score(database, user_id=user_id, message_id=reply, value=None) is None
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.5)
    assert commands.set_score(database, user_id=user_id, message_id=reply, value=0.5) is None
    assert len(queries.score_events(database)) == 1


@pytest.mark.parametrize("value", [1.0001, -2, float("nan"), float("inf"), float("-inf"), True])
def test_what_is_no_score_is_refused(
    database: Database, user_id: int, reply: int, value: float
) -> None:
    with pytest.raises(DataError):
        commands.set_score(database, user_id=user_id, message_id=reply, value=value)
    with pytest.raises(DataError):
        commands.set_outcome(database, user_id=user_id, conversation_id=1, value=value)
    assert queries.score_events(database) == []


def test_only_replies_that_exist_are_scored(database: Database, user_id: int, reply: int) -> None:
    question = reply - 1
    with pytest.raises(DataError, match="user message"):
        commands.set_score(database, user_id=user_id, message_id=question, value=1)
    with pytest.raises(NotFoundError):
        commands.set_score(database, user_id=user_id, message_id=999, value=1)
    with pytest.raises(NotFoundError):
        commands.set_outcome(database, user_id=user_id, conversation_id=999, value=1)


def test_undo_goes_back_step_by_step_through_turns_and_outcomes(
    database: Database, user_id: int, reply: int
) -> None:
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.25, note="first")
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.75, note="second")
    commands.set_outcome(database, user_id=user_id, conversation_id=1, value=-1)
    commands.set_score(database, user_id=user_id, message_id=reply, value=None)
    assert stored(database) == [(-1.0, "")]
    expected = [
        [(0.75, "second"), (-1.0, "")],
        [(0.75, "second")],
        [(0.25, "first")],
        [],
    ]
    for state in expected:
        assert commands.undo(database, user_id=user_id) != ()
        assert stored(database) == state
    assert commands.undo(database, user_id=user_id) == ()
    assert len(queries.score_events(database)) == 8  # the log only grew


def test_after_an_undo_new_changes_are_undone_first(
    database: Database, user_id: int, reply: int
) -> None:
    for value in (0.1, 0.2):
        commands.set_score(database, user_id=user_id, message_id=reply, value=value)
    commands.undo(database, user_id=user_id)
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.3)
    undone = [event for _ in range(3) for event in commands.undo(database, user_id=user_id)]
    assert [(u.old_value, u.new_value) for u in undone] == [(0.3, 0.1), (0.1, None)]


def test_undo_leaves_other_people_and_arrived_scores_alone(
    database: Database, user_id: int
) -> None:
    id = commands.add_conversation(database, scored_talk(("a", 0.5), rater="local"))
    reply = queries.conversation(database, id).messages[1]
    assert reply.scores[0].rater == "local"
    assert commands.undo(database, user_id=user_id) == ()
    assert [e.new_value for e in queries.score_events(database, user_id=user_id)] == [0.5]


def test_a_second_rater_overwrites_nobody(database: Database, user_id: int, reply: int) -> None:
    commands.set_score(database, user_id=user_id, message_id=reply, value=1)
    commands.add_conversations(
        database,
        [
            scored_talk(("x", 0.0), rater="ann"),
        ],
    )
    ann = next(
        event.user_id for event in queries.score_events(database) if event.user_id != user_id
    )
    commands.set_score(database, user_id=ann, message_id=reply, value=-1)
    scores = queries.conversation(database, 1).messages[1].scores
    assert [(s.rater, s.value) for s in scores] == [("local", 1.0), ("ann", -1.0)]
    commands.undo(database, user_id=user_id)
    assert [s.rater for s in queries.conversation(database, 1).messages[1].scores] == ["ann"]


def test_events_can_be_asked_for_by_conversation_and_user(
    database: Database, user_id: int, reply: int
) -> None:
    other = commands.add_conversation(database, scored_talk(("x", 0.0), rater="ann"))
    commands.set_score(database, user_id=user_id, message_id=reply, value=1)
    commands.set_score(database, user_id=user_id, message_id=reply, value=0)
    assert [e.new_value for e in queries.score_events(database, user_id=user_id)] == [0.0, 1.0]
    assert [e.new_value for e in queries.score_events(database, conversation_id=other)] == [0.0]
    assert len(queries.score_events(database, limit=1)) == 1


def test_review_states(database: Database, user_id: int, reply: int) -> None:
    def state() -> ReviewState:
        return queries.review_state(database, user_id=user_id, conversation_id=1)

    assert state() is ReviewState.OPEN
    for wanted in (ReviewState.DONE, ReviewState.FLAGGED, ReviewState.OPEN):
        commands.set_review(database, user_id=user_id, conversation_id=1, state=wanted)
        assert state() is wanted
    with pytest.raises(NotFoundError):
        commands.set_review(database, user_id=user_id, conversation_id=9, state=ReviewState.DONE)


def test_score_times_are_aware_and_move_with_changes(
    database: Database, user_id: int, reply: int
) -> None:
    def current() -> Score:
        return queries.conversation(database, 1).messages[1].scores[0]

    commands.set_score(database, user_id=user_id, message_id=reply, value=0.5)
    first = current().at
    commands.set_score(database, user_id=user_id, message_id=reply, value=0.6)
    second = current().at
    assert first is not None and second is not None
    assert first.tzinfo is not None and second > first
