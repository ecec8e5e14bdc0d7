"""The label page: what every control does, and what is shown of scores."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app import data, routes
from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, ScoreScale
from db.records import Score, User
from tests.app.conftest import OpenPage, chat
from tests.app.labelling import button, exact_score, press, scores


def badges(app: AppTest) -> list[str]:
    return [m.value for m in app.markdown if "turn " in m.value and "badge" in m.value]


def state(database: Database, user: User, conversation_id: int) -> ReviewState:
    return queries.review_state(database, user_id=user.id, conversation_id=conversation_id)


def test_zero_is_shown_as_a_score_and_a_missing_one_as_missing(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    assert "0.80 saved" in badges(app)[0]
    assert "0.00 saved" in badges(app)[1]
    app = open_page(routes.LABEL, conversation=conversation_ids[1])
    assert "not scored" in badges(app)[0]


def test_a_score_outside_the_offered_scale_is_shown_and_kept(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    before = queries.score_events(database)
    app = open_page(routes.LABEL, conversation=conversation_ids[1], turn=2)
    assert "−0.70 saved" in badges(app)[1]
    assert exact_score(app).value == pytest.approx(-0.7)
    assert any(b.key and b.key.endswith(".keys.-0.7") for b in app.button)
    assert scores(database, conversation_ids[1]) == [None, -0.7]
    assert queries.score_events(database) == before


def test_a_score_marks_the_next_turn(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    press(app, 0.7)
    assert scores(database, conversation_ids[2]) == [0.7, None]
    assert app.query_params["turn"] == "2"
    press(app, 0.0)
    assert scores(database, conversation_ids[2]) == [0.7, 0.0]
    assert "0.00 saved" in badges(app)[1]


def test_any_turn_can_be_scored_and_cleared_with_the_mouse(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    button(app, "Score").click().run()
    assert app.query_params["turn"] == "2"
    press(app, 0.3)
    assert scores(database, conversation_ids[2]) == [None, 0.3]
    button(app, "Clear").click().run()
    assert not app.exception
    assert scores(database, conversation_ids[2]) == [None, None]
    assert "not scored" in badges(app)[1]


def test_exact_scores_and_notes_are_stored(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    app.text_input[0].set_value("asks <b>first</b>").run()
    exact_score(app).set_value(0.85).run()
    assert not app.exception
    score = queries.conversation(database, conversation_ids[2]).assistant_messages[0].scores[0]
    assert (score.value, score.note) == (0.85, "asks <b>first</b>")


def test_the_whole_conversation_is_scored(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    press(app, 0.4, among="outcome.")
    outcomes = queries.conversation(database, conversation_ids[0]).outcomes
    assert [outcome.value for outcome in outcomes] == [0.4]


def test_undo_and_redo_work_after_a_reload_and_show_where(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    press(open_page(routes.LABEL, conversation=conversation_ids[0], turn=1), 0.5)
    assert scores(database, conversation_ids[0]) == [0.5, 0.0]
    reloaded = open_page(routes.LABEL, conversation=conversation_ids[2])
    button(reloaded, "Undo").click().run()
    assert not reloaded.exception
    assert scores(database, conversation_ids[0]) == [0.8, 0.0]
    assert reloaded.query_params["conversation"] == str(conversation_ids[0])
    assert reloaded.query_params["turn"] == "1"
    assert "0.80 saved" in badges(reloaded)[0]
    again = open_page(routes.LABEL, conversation=conversation_ids[2])
    button(again, "Redo").click().run()
    assert scores(database, conversation_ids[0]) == [0.5, 0.0]
    assert [toast.value for toast in again.toast] == ["Redone: turn 1 is 0.50."]


def test_all_the_rest_get_one_score_and_one_undo_takes_it_back(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[1])
    press(app, 0.5, among="remaining")
    assert scores(database, conversation_ids[1]) == [0.5, -0.7]
    button(app, "Undo").click().run()
    assert scores(database, conversation_ids[1]) == [None, -0.7]


def test_done_stores_it_and_opens_the_next_conversation(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    button(app, "Done, next").click().run()
    assert app.query_params["conversation"] == str(conversation_ids[1])
    assert state(database, user, conversation_ids[0]) is ReviewState.DONE
    button(app, "Done, next").click().run()
    assert [toast.value for toast in app.toast] == ["Marked done with 1 of its turns not scored."]
    button(app, "Undo").click().run()
    assert app.query_params["conversation"] == str(conversation_ids[1])
    assert state(database, user, conversation_ids[1]) is ReviewState.OPEN


def test_flag_is_set_and_taken_back(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    button(app, "Flag").click().run()
    assert state(database, user, conversation_ids[0]) is ReviewState.FLAGGED
    button(app, "Unflag").click().run()
    assert state(database, user, conversation_ids[0]) is ReviewState.OPEN


def test_next_unscored_wraps_around(open_page: OpenPage, conversation_ids: list[int]) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2], turn=2)
    button(app, "Next unscored").click().run()
    assert (app.query_params["conversation"], app.query_params["turn"]) == (
        str(conversation_ids[2]),
        "1",
    )
    press(app, 0.1)
    press(app, 0.1)
    button(app, "Next unscored").click().run()
    assert app.query_params["conversation"] == str(conversation_ids[1])


def test_without_an_address_a_rater_goes_on_where_they_left_off(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL)
    assert app.query_params["conversation"] == str(conversation_ids[1])
    press(open_page(routes.LABEL, conversation=conversation_ids[2]), 0.2)
    assert open_page(routes.LABEL).query_params["conversation"] == str(conversation_ids[2])


def test_an_empty_queue_says_so(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    for id in conversation_ids:
        commands.set_review(database, user_id=user.id, conversation_id=id, state=ReviewState.DONE)
    data.refresh()
    app = open_page(routes.LABEL)
    assert [s.value for s in app.subheader] == ["Nothing waits for you here"]
    assert "3 done" in [caption.value for caption in app.caption]


@pytest.mark.parametrize(
    ("scale", "values", "told"),
    [
        (ScoreScale.STARS, [0.0, 0.25, 0.5, 0.75, 1.0], "4 ★"),
        (ScoreScale.THUMBS, [0.0, 1.0], "thumb_up"),
        (ScoreScale.SIGNED, [-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0], "0.75"),
    ],
)
def test_another_scale_offers_other_choices_and_changes_no_stored_number(
    open_page: OpenPage,
    database: Database,
    conversation_ids: list[int],
    scale: ScoreScale,
    values: list[float],
    told: str,
) -> None:
    before = scores(database, conversation_ids[0]), queries.score_events(database)
    commands.change_project_settings(database, {"scale": scale})
    data.refresh()
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    keys = [b.key or "" for b in app.button if (b.key or "").startswith("turn.")]
    assert [float(key.split(".keys.")[1]) for key in keys if ".keys." in key] == values
    assert (scores(database, conversation_ids[0]), queries.score_events(database)) == before
    press(app, 0.75 if 0.75 in values else 1.0)
    assert told in badges(app)[0]
    assert "0.80 saved" in badges(open_page(routes.LABEL, conversation=conversation_ids[0]))[0]


def test_other_peoples_scores_are_shown_and_left_alone(
    open_page: OpenPage, database: Database, user: User
) -> None:
    conversation_id = _with_anns_score(database)
    app = open_page(routes.LABEL, conversation=conversation_id)
    assert "not scored" in badges(app)[0]
    assert "ann 1.00" in badges(app)[0]
    press(app, 0.2)
    turn = queries.conversation(database, conversation_id).assistant_messages[0]
    assert {score.rater: score.value for score in turn.scores} == {"ann": 1.0, user.name: 0.2}


def test_blind_scoring_hides_what_others_said_until_ones_own_score_is_in(
    open_page: OpenPage, database: Database
) -> None:
    commands.change_project_settings(database, {"blind": True})
    conversation_id = _with_anns_score(database)
    app = open_page(routes.LABEL, conversation=conversation_id)
    assert "ann" not in " ".join(badges(app))
    press(app, 0.2)
    assert "ann 1.00" in badges(app)[0]
    button(app, "Clear").click().run()
    assert "ann" not in " ".join(badges(app))


def _with_anns_score(database: Database) -> int:
    conversation = chat("Two raters", ("Hi", "Hello", None))
    reply = conversation.messages[1]
    with_score = replace(reply, scores=(Score(rater="ann", value=1.0),))
    conversation = replace(conversation, messages=(conversation.messages[0], with_score))
    conversation_id = commands.add_conversation(database, conversation)
    data.refresh()
    return conversation_id
