"""The insight page: pictures of the scores, and conversations that are almost the same."""

import pytest

from app import data, routes
from db import commands, queries
from tests.app.conftest import chat
from tests.app.launching import button, texts


def test_an_empty_home_sends_people_to_the_data(open_page):
    page = open_page(routes.INSIGHT)
    assert not page.exception
    assert "no conversation yet" in texts(page.markdown)


def test_without_scores_it_says_what_will_be_here(open_page, database, conversation_ids):
    commands.delete_conversations(database, conversation_ids[:2])
    data.refresh()
    page = open_page(routes.INSIGHT)
    assert not page.exception
    assert "None of 2 turns has a score yet" in texts(page.markdown)
    assert not page.metric


def test_it_tells_what_is_scored_and_what_is_not(open_page, conversation_ids):
    page = open_page(routes.INSIGHT)
    assert not page.exception
    values = {metric.label: metric.value for metric in page.metric}
    assert values["Turns without a score"] == "3"
    assert values["Scored in full"] == "1"
    assert "1 in part, 1 not at all" in texts(page.caption)
    titles = texts(page.markdown)
    for title in ("How often each score was given", "Mean score by turn", "Mean score by rater"):
        assert title in titles


TALK = [(f"Question number {n} about the parcel", f"A reply that says {n} things", None)
        for n in range(12)]  # fmt: skip


@pytest.fixture
def copies(database, conversation_ids) -> list[int]:
    """Two conversations that differ in a word."""
    ids, _ = commands.add_conversations(
        database,
        [
            chat("First", *TALK),
            chat(
                "Second", *TALK[:-1], ("Question number 11 about the parcel", "Another reply", None)
            ),
        ],
    )
    data.refresh()
    return ids


def test_near_duplicates_are_looked_for_when_asked(open_page, database, copies):
    page = open_page(routes.INSIGHT)
    assert "is like" not in str([list(frame.value.columns) for frame in page.dataframe])
    page.toggle(key="duplicates").set_value(True).run()
    assert not page.exception
    (frame,) = [f.value for f in page.dataframe if "is like" in f.value.columns]
    assert frame[["Conversation", "is like"]].to_numpy().tolist() == [["First", "Second"]]
    assert "1 conversation of 5 is like another one" in texts(page.caption)
    button(page, "Archive").click().run()
    assert queries.conversation(database, copies[0]).archived
    assert "no two are that much alike" in texts(page.success)
