from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app import data, routes
from app.components.label_queue import place_of
from app.components.score_input import choices, short_score
from db import commands, queries
from db.engine import Database
from db.enums import ReviewState
from db.records import Score, User
from tests.app.conftest import MARKUP, OpenPage, chat


def button(app: AppTest, label: str):
    return next(button for button in app.button if button.label == label)


def scores(database: Database, conversation_id: int) -> list[float | None]:
    turns = queries.conversation(database, conversation_id).assistant_messages
    return [turn.scores[0].value if turn.scores else None for turn in turns]


def badges(app: AppTest) -> list[str]:
    return [m.value for m in app.markdown if "turn " in m.value and "badge" in m.value]


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
    app = open_page(routes.LABEL, conversation=conversation_ids[1])
    assert "−0.70 saved" in badges(app)[1]
    assert app.number_input[1].value == pytest.approx(-0.7)
    assert scores(database, conversation_ids[1]) == [None, -0.7]
    assert queries.score_events(database) == before


def test_a_key_scores_the_marked_turn_and_marks_the_next(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    key = next(b for b in app.button if b.proto.shortcut == "7")
    key.click().run()
    assert scores(database, conversation_ids[2]) == [0.7, None]
    assert app.query_params["turn"] == "2"
    next(b for b in app.button if b.proto.shortcut == "0").click().run()
    assert scores(database, conversation_ids[2]) == [0.7, 0.0]
    assert "0.00 saved" in badges(app)[1]


def test_any_turn_can_be_scored_and_cleared_with_the_mouse(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    picker = app.button_group[0]
    picker.set_value(0.3).run()
    assert scores(database, conversation_ids[2]) == [None, 0.3]
    button(app, "Clear the score").click().run()
    assert not app.exception
    assert scores(database, conversation_ids[2]) == [None, None]


def test_exact_scores_and_notes_are_stored(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    app.number_input[0].set_value(0.85).run()
    app.text_area[0].set_value("asks <b>first</b>").run()
    assert not app.exception
    score = queries.conversation(database, conversation_ids[2]).assistant_messages[0].scores[0]
    assert (score.value, score.note) == (0.85, "asks <b>first</b>")
    assert "Note: asks <b>first</b>" in [text.value for text in app.text]


def test_the_whole_conversation_is_scored(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    app.button_group[-1].set_value(0.4).run()
    outcomes = queries.conversation(database, conversation_ids[0]).outcomes
    assert [outcome.value for outcome in outcomes] == [0.4]


def test_undo_takes_back_the_last_change_also_after_a_reload(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    next(b for b in app.button if b.proto.shortcut == "5").click().run()
    assert scores(database, conversation_ids[0]) == [0.5, 0.0]
    reloaded = open_page(routes.LABEL, conversation=conversation_ids[2])
    button(reloaded, "Undo").click().run()
    assert not reloaded.exception
    assert scores(database, conversation_ids[0]) == [0.8, 0.0]
    assert reloaded.query_params["conversation"] == str(conversation_ids[0])
    assert "0.80 saved" in badges(reloaded)[0]


def test_done_stores_it_and_opens_the_next_conversation(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    button(app, "Done, next").click().run()
    assert app.query_params["conversation"] == str(conversation_ids[1])
    state = queries.review_state(database, user_id=user.id, conversation_id=conversation_ids[0])
    assert state is ReviewState.DONE
    assert "1 of 2" in app.get("progress")[0].proto.text


def test_flag_is_set_and_taken_back(
    open_page: OpenPage, database: Database, conversation_ids: list[int], user: User
) -> None:
    def state() -> ReviewState:
        return queries.review_state(database, user_id=user.id, conversation_id=conversation_ids[0])

    app = open_page(routes.LABEL, conversation=conversation_ids[0])
    button(app, "Flag").click().run()
    assert state() is ReviewState.FLAGGED
    button(app, "Unflag").click().run()
    assert state() is ReviewState.OPEN


def test_next_unscored_wraps_around(open_page: OpenPage, conversation_ids: list[int]) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2], turn=2)
    button(app, "Next unscored").click().run()
    assert app.query_params["conversation"] == str(conversation_ids[1])
    assert app.query_params["turn"] == "1"


def test_without_an_address_the_first_missing_score_is_opened(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL)
    assert app.query_params["conversation"] == str(conversation_ids[1])


def test_message_text_is_shown_letter_by_letter(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.LABEL, conversation=conversation_ids[2])
    assert MARKUP in [text.value for text in app.text]
    assert not any("script" in markdown.value for markdown in app.markdown)


def test_other_peoples_scores_are_shown_and_left_alone(
    open_page: OpenPage, database: Database, user: User
) -> None:
    conversation = chat("Two raters", ("Hi", "Hello", None))
    reply = conversation.messages[1]
    with_score = replace(reply, scores=(Score(rater="ann", value=1.0),))
    conversation = replace(conversation, messages=(conversation.messages[0], with_score))
    conversation_id = commands.add_conversation(database, conversation)
    data.refresh()
    app = open_page(routes.LABEL, conversation=conversation_id)
    assert "not scored" in badges(app)[0]
    assert "ann 1.00" in badges(app)[0]
    next(b for b in app.button if b.proto.shortcut == "2").click().run()
    turn = queries.conversation(database, conversation_id).assistant_messages[0]
    assert {score.rater: score.value for score in turn.scores} == {"ann": 1.0, user.name: 0.2}


def test_very_long_messages_and_conversations_are_folded(
    open_page: OpenPage, database: Database
) -> None:
    many = chat("Long", *((f"question {i}", "x" * 100_000, None) for i in range(100)))
    conversation_id = commands.add_conversation(database, many)
    data.refresh()
    app = open_page(routes.LABEL, conversation=conversation_id, turn=100)
    assert not app.exception
    assert sum(len(text.value) for text in app.text) < 60_000
    assert "question 99" in [text.value for text in app.text]
    assert len(app.get("chat_message")) <= 40
    app.toggle[0].set_value(True).run()
    assert max(len(text.value) for text in app.text) == 100_000


@pytest.mark.parametrize(
    ("here", "previous", "following", "position"),
    [(2, None, 5, 1), (5, 2, 9, 2), (9, 5, None, 3), (6, 5, 9, None), (1, None, 2, None)],
)
def test_neighbours_are_found_even_after_leaving_the_queue(
    here: int, previous: int | None, following: int | None, position: int | None
) -> None:
    place = place_of(here, [2, 5, 9])
    assert place.onward == (2 if following is None else following)
    assert (place.previous, place.next, place.position) == (previous, following, position)


def test_the_last_conversation_of_a_queue_leads_nowhere() -> None:
    assert place_of(5, [5]).onward is None
    assert place_of(5, []).onward is None


def test_the_stored_value_is_always_among_the_choices() -> None:
    assert len(choices(None)) == 11
    assert choices(0.5) == choices(None)
    assert choices(-0.7)[0] == -0.7
    assert short_score(0.0) == "0"
    assert short_score(-0.75) == "−0.75"
    assert short_score(1.0) == "1"
