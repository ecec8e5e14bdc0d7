import time

import pytest
from streamlit.testing.v1 import AppTest

from app import data, routes, state
from db import commands, queries
from db.engine import Database
from db.records import ConversationFilter
from tests.app.conftest import OpenPage, chat
from tests.app.shown import elements, texts, trees


def button(app: AppTest, label: str):
    return next(button for button in app.button if button.label == label)


def titles(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["Title"])


def tick(app: AppTest, *rows: int) -> AppTest:
    """Tick rows of the table."""
    ticked = {"rows": list(rows), "columns": [], "cells": []}
    app.session_state["conversations.0"] = {"selection": ticked}
    return app.run()


def test_the_table_lists_searches_and_filters(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS)
    assert set(titles(app)) == {"Parcel lost", "Used bike", "Markup is text"}
    app.text_input(key="search").set_value("neighbour").run()
    assert titles(app) == ["Parcel lost"]
    app.text_input(key="search").set_value("")
    app.multiselect(key="tags").set_value(["negotiation"]).run()
    assert titles(app) == ["Used bike"]
    app.multiselect(key="tags").set_value([])
    app.selectbox(key="scored").set_value("Not scored").run()
    assert titles(app) == ["Markup is text"]


def test_a_search_without_a_match_says_so(open_page: OpenPage, conversation_ids: list[int]) -> None:
    app = open_page(routes.CONVERSATIONS, search="no such words")
    assert "No conversation matches" in app.info[0].value


def test_one_click_opens_a_conversation(open_page: OpenPage, conversation_ids: list[int]) -> None:
    app = open_page(routes.CONVERSATIONS)
    chosen = {"selection": {"rows": [], "columns": [], "cells": [(0, "Title")]}}
    app.session_state["conversations.0"] = chosen
    app.run()
    opened = queries.conversation(data.database(), int(app.query_params["conversation"]))
    assert opened.title == "Markup is text"
    assert not app.exception


def test_an_opened_conversation_shows_its_text_as_text(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[2])
    said = texts(app)
    for kept in ("<script>document.title='owned'</script>", "<img src=x onerror=alert(1)>"):
        assert [kept in text for text in said].count(True) == 2, kept  # the question and its reply
    assert {name for tree in trees(app) for name in elements(tree)} == {"p", "strong"}
    assert not any("script" in markdown.value for markdown in app.markdown)
    assert not any(markdown.allow_html for markdown in app.markdown)


def test_a_conversation_that_is_gone_is_explained(open_page: OpenPage) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=99)
    assert not app.exception
    assert "99" in app.error[0].value
    assert button(app, "All conversations")


def test_a_written_conversation_is_stored_with_its_score(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.CONVERSATIONS, mode="new")
    app.text_input[0].set_value("My own")
    system, asked, answered = app.text_area
    system.set_value("Be brief.")
    asked.set_value("How are you?")
    answered.set_value("Fine.")
    app.number_input[0].set_value(0.0)
    button(app, "Save").click().run()
    assert not app.exception
    stored = queries.conversation(database, int(app.query_params["conversation"]))
    assert (stored.title, stored.system, stored.source) == ("My own", "Be brief.", "typed")
    assert [m.content for m in stored.messages] == ["How are you?", "Fine."]
    assert stored.messages[1].scores[0].value == 0.0
    assert state.DRAFT.key not in app.session_state


def test_a_draft_survives_moving_adding_and_looking_elsewhere(open_page: OpenPage) -> None:
    app = open_page(routes.CONVERSATIONS, mode="new")
    app.text_area[1].set_value("first")
    app.text_area[2].set_value("second")
    app.run()
    button(app, "Down").click().run()
    assert [area.value for area in app.text_area][1:] == ["second", "first"]
    button(app, "Add below").click().run()
    assert [area.value for area in app.text_area][1:] == ["second", "", "first"]
    app.switch_page(routes.HOME)
    app.query_params.clear()
    app.run()
    app.switch_page(routes.CONVERSATIONS)
    app.query_params["mode"] = "new"
    app.run()
    assert [area.value for area in app.text_area][1:] == ["second", "", "first"]


def long_talk(database: Database, turns: int) -> int:
    pairs = ((f"ask {n}", f"reply {n}", None) for n in range(turns))
    id = commands.add_conversation(database, chat("Long", *pairs))
    data.refresh()
    return id


def turn_page(app: AppTest, number: int) -> AppTest:
    return app.pagination[0].set_value(number).run()


def shown_texts(app: AppTest) -> list[str | None]:
    return [area.value for area in app.text_area][1:]


def test_a_long_conversation_is_edited_page_by_page_and_saved_whole(
    open_page: OpenPage, database: Database
) -> None:
    id = long_talk(database, 500)
    started = time.monotonic()
    app = open_page(routes.CONVERSATIONS, conversation=id, mode="edit")
    assert time.monotonic() - started < 15
    assert shown_texts(app) == [f"{who} {n}" for n in range(10) for who in ("ask", "reply")]
    app.text_area[1].set_value("first page")
    turn_page(app, 50)  # together with the text, as when the click is what ends the typing
    assert shown_texts(app)[-1] == "reply 499"
    app.text_area[-1].set_value("last page")
    app.number_input[-1].set_value(0.25)
    turn_page(app, 1)
    assert shown_texts(app)[0] == "first page"
    button(app, "Save").click().run()
    assert not app.exception
    stored = queries.conversation(database, id)
    assert len(stored.messages) == 1000
    assert stored.messages[0].content == "first page"
    assert stored.messages[998].content == "ask 499"
    assert stored.messages[999].content == "last page"
    assert [score.value for score in stored.messages[999].scores] == [0.25]


def test_the_page_follows_the_message_that_is_worked_on(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=long_talk(database, 10), mode="edit")
    assert not app.pagination
    app.text_area[-1].set_value("the last")
    [b for b in app.button if b.label == "Add below"][-1].click().run()
    assert shown_texts(app) == [""]
    button(app, "Up").click().run()
    assert shown_texts(app)[-2:] == ["ask 9", ""]
    turn_page(app, 2)
    assert shown_texts(app) == ["the last"]
    button(app, "Remove").click().run()
    assert not app.exception
    assert len(shown_texts(app)) == 20


def test_an_empty_message_is_not_stored_and_nothing_typed_is_lost(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.CONVERSATIONS, mode="new")
    app.text_area[1].set_value("Only this")
    button(app, "Save").click().run()
    assert "Message 2" in app.error[0].value
    assert app.text_area[1].value == "Only this"
    assert queries.overview(database).conversations == 0


def test_editing_keeps_the_scores_of_untouched_turns(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[1], mode="edit")
    app.text_area[1].set_value("Would you take 81?")
    button(app, "Save").click().run()
    assert not app.exception
    stored = queries.conversation(database, conversation_ids[1])
    assert stored.messages[0].content == "Would you take 81?"
    assert [s.value for s in stored.messages[3].scores] == [-0.7]
    assert stored.messages[1].scores == ()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_new_text_of_a_scored_reply_asks_whether_its_scores_hold(
    open_page: OpenPage, database: Database, conversation_ids: list[int], keeps: bool
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[0], mode="edit")
    app.text_area[2].set_value("What is the order number?")
    button(app, "Save").click().run()
    assert (
        "**1 scored turn**. Given for what was said before: **1 score** by local"
        in app.markdown[-1].value
    )
    reply = queries.conversation(database, conversation_ids[0]).messages[1]
    assert reply.content == "Could you give me the order number?"
    button(app, "Keep the scores" if keeps else "Take them away").click().run()
    assert not app.exception
    reply = queries.conversation(database, conversation_ids[0]).messages[1]
    assert reply.content == "What is the order number?"
    assert [score.value for score in reply.scores] == ([0.8] if keeps else [])
    assert reply.id is not None
    (edit,) = [c for c in queries.turn_history(database, reply.id) if c.old_text is not None]
    assert (edit.who, edit.old_text) == ("local", "Could you give me the order number?")
    assert edit.scores_kept is keeps


def test_a_score_given_elsewhere_while_a_text_is_edited_stays(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[0], mode="edit")
    reply = queries.conversation(database, conversation_ids[0]).messages[1]
    assert reply.id is not None
    commands.set_score(database, user_id=1, message_id=reply.id, value=0.3)
    data.refresh()
    app.text_area[1].set_value("My parcel is late.")
    button(app, "Save").click().run()
    assert not app.exception
    reply = queries.conversation(database, conversation_ids[0]).messages[1]
    assert [score.value for score in reply.scores] == [0.3]


def test_deleting_asks_with_the_count_first(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[0])
    button(app, "Delete").click().run()
    assert "1 conversation with 2 turns and 2 scores" in app.markdown[-1].value
    assert queries.overview(database).conversations == 3
    button(app, "Delete 1 conversation").click().run()
    assert not app.exception
    assert queries.overview(database).conversations == 2


def test_archive_and_duplicate(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS, conversation=conversation_ids[0])
    button(app, "Duplicate").click().run()
    copied = queries.conversation(database, int(app.query_params["conversation"]))
    assert copied.id != conversation_ids[0]
    assert all(turn.scores == () for turn in copied.assistant_messages)
    button(app, "Archive").click().run()
    assert queries.conversation(database, int(app.query_params["conversation"])).archived


def test_ticked_rows_are_tagged_together(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = tick(open_page(routes.CONVERSATIONS), 0, 1)
    app.text_input(key="many.tag").set_value("urgent").run()
    button(app, "Add").click().run()
    assert not app.exception
    tagged = ConversationFilter(tags=("urgent",))
    assert queries.count_conversations(database, tagged, user_id=1) == 2
    assert "negotiation" in queries.all_tags(database)


def test_ticked_rows_are_archived_together_and_brought_back(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.CONVERSATIONS)
    kept = titles(app)[1]
    tick(app, 0, 2)
    assert "**2 conversations chosen**" in [markdown.value for markdown in app.markdown]
    button(app, "Archive").click().run()
    assert not app.exception
    assert titles(app) == [kept]
    assert queries.count_conversations(database, ConversationFilter(archived=True), user_id=1) == 2
    app = tick(open_page(routes.CONVERSATIONS, archived="true"), 0, 1)
    button(app, "Bring back").click().run()
    assert queries.count_conversations(database, ConversationFilter(), user_id=1) == 3


def test_the_export_holds_what_the_filters_let_through(
    open_page: OpenPage, conversation_ids: list[int]
) -> None:
    text = data.export(ConversationFilter(tags=("support",)), user_id=1, format="native")
    assert text.count(b"\n") == 1
    assert b"48213" in text
