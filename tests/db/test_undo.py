"""Undo and redo: read from the log, across conversations, in one's own changes only."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db import commands, queries
from db.engine import Database
from db.enums import ReviewState
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import scored_talk

pytestmark = ON_EVERY_DATABASE

RATERS = count()


@pytest.fixture
def replies(database: Database) -> list[int]:
    """Three replies in two conversations."""
    ids, _ = commands.add_conversations(
        database, [scored_talk(("a", None), ("b", None)), scored_talk(("c", None))]
    )
    return [
        message.id
        for id in ids
        for message in queries.conversation(database, id).assistant_messages
        if message.id is not None
    ]


def values(database: Database, replies: list[int], rater: str = "local") -> list[float | None]:
    found: dict[int | None, float] = {}
    for id in (1, 2):
        for message in queries.conversation(database, id).assistant_messages:
            for score in message.scores:
                if score.rater == rater:
                    found[message.id] = score.value
    return [found.get(reply) for reply in replies]


def test_redo_brings_back_what_undo_took_until_something_new_is_done(
    database: Database, user_id: int, replies: list[int]
) -> None:
    for reply, value in zip(replies, (0.1, 0.2, 0.3), strict=True):
        commands.set_score(database, user_id=user_id, message_id=reply, value=value)
    commands.undo(database, user_id=user_id)
    commands.undo(database, user_id=user_id)
    assert values(database, replies) == [0.1, None, None]
    commands.redo(database, user_id=user_id)
    assert values(database, replies) == [0.1, 0.2, None]
    commands.undo(database, user_id=user_id)
    commands.redo(database, user_id=user_id)
    commands.redo(database, user_id=user_id)
    assert values(database, replies) == [0.1, 0.2, 0.3]
    assert commands.redo(database, user_id=user_id) == ()
    commands.undo(database, user_id=user_id)
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.9)
    assert commands.redo(database, user_id=user_id) == ()
    assert values(database, replies) == [0.9, 0.2, None]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(actions=st.lists(st.sampled_from(["undo", "redo", 0, 1, 2]), max_size=14))
def test_any_mix_of_changes_undos_and_redos_is_what_two_stacks_would_give(
    database: Database, replies: list[int], actions: list[str | int]
) -> None:
    name = f"rater {next(RATERS)}"
    commands.add_conversation(database, scored_talk((name, 0.0), rater=name))
    rater = queries.score_events(database, limit=1)[0].user_id
    done: list[tuple[int, float | None, float]] = []
    undone: list[tuple[int, float | None, float]] = []
    expected: list[float | None] = [None, None, None]
    for step, action in enumerate(actions):
        if isinstance(action, int):
            value = (step + 1) / 100
            commands.set_score(database, user_id=rater, message_id=replies[action], value=value)
            done.append((action, expected[action], value))
            undone.clear()
            expected[action] = value
        elif action == "undo":
            assert bool(commands.undo(database, user_id=rater)) == bool(done)
            if done:
                undone.append(done.pop())
                expected[undone[-1][0]] = undone[-1][1]
        else:
            assert bool(commands.redo(database, user_id=rater)) == bool(undone)
            if undone:
                done.append(undone.pop())
                expected[done[-1][0]] = done[-1][2]
    assert values(database, replies, name) == expected


def test_scoring_all_that_is_left_is_one_action_for_undo_and_redo(
    database: Database, user_id: int, replies: list[int]
) -> None:
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.0)
    number = commands.score_remaining(database, user_id=user_id, conversation_id=1, value=0.5)
    assert (number, values(database, replies)) == (1, [0.0, 0.5, None])
    commands.undo(database, user_id=user_id)
    commands.undo(database, user_id=user_id)
    number = commands.score_remaining(database, user_id=user_id, conversation_id=1, value=0.5)
    assert (number, values(database, replies)) == (2, [0.5, 0.5, None])
    assert len(commands.undo(database, user_id=user_id)) == 2
    assert values(database, replies) == [None, None, None]
    assert len(commands.redo(database, user_id=user_id)) == 2
    assert values(database, replies) == [0.5, 0.5, None]
    assert len(commands.undo(database, user_id=user_id)) == 2


def test_done_skipped_and_flagged_are_undone_too(
    database: Database, user_id: int, replies: list[int]
) -> None:
    def state() -> ReviewState:
        return queries.review_state(database, user_id=user_id, conversation_id=1)

    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.7)
    commands.set_review(database, user_id=user_id, conversation_id=1, state=ReviewState.DONE)
    commands.set_review(database, user_id=user_id, conversation_id=1, state=ReviewState.DONE)
    (event,) = commands.undo(database, user_id=user_id)
    assert (event.old_state, event.new_state) == (ReviewState.DONE, ReviewState.OPEN)
    assert (state(), values(database, replies)[0]) == (ReviewState.OPEN, 0.7)
    commands.redo(database, user_id=user_id)
    assert state() is ReviewState.DONE
    commands.undo(database, user_id=user_id)
    commands.undo(database, user_id=user_id)
    assert (state(), values(database, replies)[0]) == (ReviewState.OPEN, None)
    assert [e.new_state for e in queries.score_events(database)] == [None, None]


def test_undo_touches_nobody_elses_changes(
    database: Database, user_id: int, replies: list[int]
) -> None:
    commands.add_conversation(database, scored_talk(("x", 0.0), rater="ann"))
    ann = queries.score_events(database)[0].user_id
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.1)
    commands.set_score(database, user_id=ann, message_id=replies[0], value=0.9)
    commands.undo(database, user_id=user_id)
    assert (values(database, replies)[0], values(database, replies, "ann")[0]) == (None, 0.9)
    commands.redo(database, user_id=ann)
    assert (values(database, replies)[0], values(database, replies, "ann")[0]) == (None, 0.9)


def test_a_note_may_come_before_its_score(
    database: Database, user_id: int, replies: list[int]
) -> None:
    def pending() -> dict[int, str]:
        return queries.pending_notes(database, user_id=user_id, conversation_id=1)

    def note() -> str:
        return queries.conversation(database, 1).assistant_messages[0].scores[0].note

    commands.set_note(database, user_id=user_id, message_id=replies[0], note="why")
    assert pending() == {replies[0]: "why"}
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.2)
    assert (pending(), note()) == ({}, "why")
    commands.set_note(database, user_id=user_id, message_id=replies[0], note="because")
    assert (pending(), note()) == ({}, "because")
    commands.undo(database, user_id=user_id)
    assert note() == "why"
    commands.set_note(database, user_id=user_id, message_id=replies[1], note="x")
    commands.set_note(database, user_id=user_id, message_id=replies[1], note=" ")
    assert pending() == {}


def test_a_note_that_waited_for_its_score_waits_again_when_that_is_undone(
    database: Database, user_id: int, replies: list[int]
) -> None:
    commands.set_note(database, user_id=user_id, message_id=replies[0], note="typed with care")
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.2)
    commands.undo(database, user_id=user_id)
    waiting = queries.pending_notes(database, user_id=user_id, conversation_id=1)
    assert waiting == {replies[0]: "typed with care"}
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.9)
    (score,) = queries.conversation(database, 1).assistant_messages[0].scores
    assert (score.value, score.note) == (0.9, "typed with care")
    commands.set_score(database, user_id=user_id, message_id=replies[0], value=None)
    assert queries.pending_notes(database, user_id=user_id, conversation_id=1) == {}


CHANGES: dict[str, Callable[[Database, int, int], object]] = {
    "a score": lambda db, user, reply: commands.set_score(
        db, user_id=user, message_id=reply, value=0.25
    ),
    "a score taken away": lambda db, user, reply: commands.set_score(
        db, user_id=user, message_id=reply, value=None
    ),
    "a note": lambda db, user, reply: commands.set_note(
        db, user_id=user, message_id=reply, note="b"
    ),
    "a note before its score": lambda db, user, reply: commands.set_note(
        db, user_id=user, message_id=reply + 2, note="b"
    ),
    "the rest": lambda db, user, reply: commands.score_remaining(
        db, user_id=user, conversation_id=1, value=0.25
    ),
    "an outcome": lambda db, user, reply: commands.set_outcome(
        db, user_id=user, conversation_id=1, value=-1, note="b"
    ),
    "an outcome taken away": lambda db, user, reply: commands.set_outcome(
        db, user_id=user, conversation_id=1, value=None
    ),
    "done": lambda db, user, reply: commands.set_review(
        db, user_id=user, conversation_id=1, state=ReviewState.DONE
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_rater_changes_is_undone_and_redone(
    database: Database, user_id: int, replies: list[int], change: str
) -> None:
    def seen() -> object:
        conversation = queries.conversation(database, 1)
        said = [turn.scores for turn in conversation.assistant_messages] + [conversation.outcomes]
        return (
            [[(score.value, score.note) for score in scores] for scores in said],
            queries.pending_notes(database, user_id=user_id, conversation_id=1),
            queries.review_state(database, user_id=user_id, conversation_id=1),
            queries.overview(database).scored_turns,
        )

    commands.set_score(database, user_id=user_id, message_id=replies[0], value=0.5, note="a")
    commands.set_outcome(database, user_id=user_id, conversation_id=1, value=0.5, note="a")
    before = seen()
    CHANGES[change](database, user_id, replies[0])
    after = seen()
    assert after != before
    for _ in range(2):
        assert commands.undo(database, user_id=user_id)
        assert seen() == before
        assert commands.redo(database, user_id=user_id)
        assert seen() == after
