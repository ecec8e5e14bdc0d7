"""Two windows of the app, or a change in between: what each of them says stays true."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app import data, routes
from db import commands, queries
from db.engine import Database
from db.enums import ReviewState
from db.records import Conversation, User
from tests.app.conftest import OpenPage
from tests.app.labelling import button, exact_score, press
from tests.db.building import rated_talk


def said_of(database: Database, id: int) -> list[float]:
    """Return every score of a conversation, of its turns and of the whole."""
    talk = queries.conversation(database, id)
    scores = [*(s for turn in talk.assistant_messages for s in turn.scores), *talk.outcomes]
    return [score.value for score in scores]


def edit(database: Database, id: int) -> None:
    """Change a reply's text, as an admin does in another window."""
    talk: Conversation = queries.conversation(database, id)
    reply = replace(talk.messages[1], content="Something else.")
    messages = (talk.messages[0], reply, *talk.messages[2:])
    commands.update_conversation(database, id, replace(talk, messages=messages))
    data.refresh()


def test_undo_takes_back_what_the_other_window_did_last_and_says_what(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    _, second, third = conversation_ids
    one = open_page(routes.LABEL, conversation=third)
    other = open_page(routes.LABEL, conversation=second)
    press(one, 0.7)
    press(other, 0.2)
    button(one, "Undo").click().run()
    assert [toast.value for toast in one.toast] == ["Undone: turn 1 is not scored."]
    assert one.query_params["conversation"] == str(second)  # where something changed
    assert (said_of(database, third), said_of(database, second)) == ([0.7], [-0.7])
    press(other, 0.3)  # its next turn has a score from before, which this replaces
    assert said_of(database, second) == [0.3]
    button(one, "Redo").click().run()
    assert [toast.value for toast in one.toast] == ["There is nothing to redo."]


def test_a_flag_that_the_other_window_has_set_is_not_taken_away_by_setting_it(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    windows = [open_page(routes.LABEL, conversation=conversation_ids[0]) for _ in range(2)]
    for window in windows:
        button(window, "Flag").click().run()
        stance = queries.review_state(
            database, user_id=user.id, conversation_id=conversation_ids[0]
        )
        assert stance is ReviewState.FLAGGED
        assert button(window, "Unflag")


def test_a_note_of_the_whole_conversation_keeps_the_score_that_the_other_window_gave(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    id = conversation_ids[0]
    one = press(open_page(routes.LABEL, conversation=id), 0.4, among="outcome.")
    other = open_page(routes.LABEL, conversation=id)
    press(one, 0.8, among="outcome.")
    note = next(f for f in other.text_input if (f.key or "").startswith(f"outcome.{id}.note"))
    note.set_value("went well").run()
    assert not other.exception
    (outcome,) = queries.conversation(database, id).outcomes
    assert (outcome.value, outcome.note) == (0.8, "went well")


@pytest.mark.parametrize(
    "score",
    [
        lambda app: press(app, 0.6),
        lambda app: press(app, 0.6, among="remaining."),
        lambda app: press(app, 0.6, among="outcome."),
        lambda app: exact_score(app).set_value(0.6).run(),
    ],
    ids=["a turn", "all the rest", "the whole", "exactly"],
)
def test_what_was_edited_since_it_was_drawn_is_read_before_it_is_scored(
    open_page: OpenPage,
    database: Database,
    conversation_ids: list[int],
    score: Callable[[AppTest], AppTest],
) -> None:
    id = conversation_ids[2]
    app = open_page(routes.LABEL, conversation=id)
    edit(database, id)
    score(app)
    assert "edited while you had it before you" in app.error[0].value
    assert said_of(database, id) == []
    score(app)
    assert not app.error
    assert 0.6 in said_of(database, id)


def test_a_draft_is_not_saved_over_what_another_admin_wrote_before_that_is_told(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    id = conversation_ids[2]
    app = open_page(routes.CONVERSATIONS, conversation=id, mode="edit")
    edit(database, id)
    app.text_area[1].set_value("My question.")
    button(app, "Save").click().run()
    assert "changed this conversation after you had begun" in app.error[0].value
    kept = [message.content for message in queries.conversation(database, id).messages]
    assert (kept[0] == "My question.", kept[1]) == (False, "Something else.")
    assert app.text_area[1].value == "My question."
    button(app, "Save").click().run()
    assert not app.exception
    now = [message.content for message in queries.conversation(database, id).messages]
    assert (now[0], now[1] == "Something else.") == ("My question.", False)


def test_tags_that_others_gave_while_a_draft_was_open_are_not_lost_without_a_word(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[2], mode="edit")
    commands.add_tags(database, [conversation_ids[2]], ["urgent"])
    data.refresh()
    app.text_area[1].set_value("My question.")
    button(app, "Save").click().run()
    assert app.error
    assert queries.conversation(database, conversation_ids[2]).tags == ("urgent",)


def test_a_decision_does_not_replace_one_that_another_admin_made_meanwhile(
    open_page: OpenPage, database: Database, user: User
) -> None:
    id = commands.add_conversation(database, rated_talk({"ann": 0.9, "ben": 0.1}))
    data.refresh()
    windows = [open_page(routes.AGREEMENT) for _ in range(2)]
    for window, value in zip(windows, (0.2, 0.7), strict=True):
        window.slider[1].set_value(value)
        button(window, "Decide").click().run()
        assert not window.exception
    (turn,) = queries.conversation(database, id).assistant_messages
    assert turn.adjudicated is not None
    assert (turn.adjudicated.value, turn.adjudicated.rater) == (0.2, user.name)
    said = windows[1].error[0].value.replace("\\", "").replace("\u2060", "")
    assert "local decided 0.20" in said
