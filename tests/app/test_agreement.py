"""The agreement page: who may see it, what it says, and that a decision is stored."""

import pytest

from app import data, routes
from db import commands, queries
from db.enums import Role, RunStatus, UserRole
from db.records import Conversation, Message, Score
from tests.app.launching import button, texts
from tests.app.rows import make_run


def rated(title: str, *turns: dict[str, float]) -> Conversation:
    messages: list[Message] = []
    for number, given in enumerate(turns):
        scores = tuple(Score(rater=rater, value=value) for rater, value in given.items())
        messages.append(Message(role=Role.USER, content=f"{title}: question {number}"))
        messages.append(Message(role=Role.ASSISTANT, content=f"reply {number}", scores=scores))
    return Conversation(messages=tuple(messages), title=title)


@pytest.fixture
def shared_ids(database) -> list[int]:
    """Two conversations that Anna and Ben scored: far apart, and alike."""
    ids, _ = commands.add_conversations(
        database,
        [
            rated("Apart", {"anna": 0.9, "ben": 0.1}, {"anna": 0.8, "ben": 0.3}),
            rated("Alike", {"anna": 0.5, "ben": 0.5}, {"anna": 0.2}),
        ],
    )
    data.refresh()
    return ids


def decided(database, conversation_id: int) -> list[float | None]:
    replies = queries.conversation(database, conversation_id).assistant_messages
    return [None if r.adjudicated is None else r.adjudicated.value for r in replies]


def test_without_shared_turns_it_says_how_to_get_some(open_page, conversation_ids):
    page = open_page(routes.AGREEMENT)
    assert not page.exception
    assert "No turn has been scored by more than one person" in texts(page.markdown)
    assert "Of 6 turns, 3 have a score" in texts(page.markdown)


def test_it_tells_alpha_and_how_many_turns_are_shared(open_page, shared_ids):
    page = open_page(routes.AGREEMENT)
    assert not page.exception
    values = {metric.label: metric.value for metric in page.metric}
    assert values["Shared turns"] == "3"
    assert values["Median spread"] == "0.50"
    assert values["Krippendorff's α"].startswith("−")
    assert "no better than chance" in texts(page.caption)


def test_the_turns_to_decide_come_widest_first_and_the_first_is_shown(open_page, shared_ids):
    page = open_page(routes.AGREEMENT)
    frame = page.dataframe[0].value
    assert list(frame["Reply"]) == ["reply 0", "reply 1"]
    assert list(frame["Scores"]) == ["0.10 … 0.90", "0.30 … 0.80"]
    assert "**0.90** · anna" in texts(page.markdown)
    assert page.slider[1].value == 0.5


def test_a_decision_is_stored_and_the_next_turn_comes_up(open_page, database, shared_ids):
    page = open_page(routes.AGREEMENT)
    page.slider[1].set_value(0.2)
    page.text_area[0].set_value("rude")
    button(page, "Decide").click().run()
    assert not page.exception
    assert decided(database, shared_ids[0]) == [0.2, None]
    assert queries.conversation(database, shared_ids[0]).messages[1].adjudicated.note == "rude"
    assert list(page.dataframe[0].value["Reply"]) == ["reply 1"]
    button(page, "Undo my latest decision").click().run()
    assert decided(database, shared_ids[0]) == [None, None]
    assert len(page.dataframe[0].value) == 2
    button(page, "Redo").click().run()
    assert not page.exception
    assert [toast.value for toast in page.toast] == ["Redone: the turn is decided, 0.20."]
    assert decided(database, shared_ids[0]) == [0.2, None]
    button(page, "Redo").click().run()
    assert "no undone decision" in page.toast[0].value


def test_decided_turns_can_be_seen_again_and_taken_back(open_page, database, user, shared_ids):
    (first, _) = queries.conversation(database, shared_ids[0]).assistant_messages
    commands.adjudicate(database, user_id=user.id, message_id=first.id, value=0.0)
    data.refresh()
    page = open_page(routes.AGREEMENT, decided="true")
    assert page.dataframe[0].value["Decided"].tolist()[0] == 0.0
    button(page, "Take back").click().run()
    assert not page.exception
    assert decided(database, shared_ids[0]) == [None, None]


def test_an_annotator_sees_nothing_of_it(open_page, database, shared_ids):
    commands.admit_person(database, "local", role=UserRole.ANNOTATOR, password=None)
    data.refresh()
    for page_name in (routes.AGREEMENT, routes.INSIGHT):
        page = open_page(page_name)
        assert not page.metric
        assert "Only admins use this page" in texts(page.info)


def test_work_is_shared_out_and_taken_back(open_page, database, shared_ids):
    for name in ("anna", "ben", "cara"):
        commands.admit_person(database, name, role=UserRole.ANNOTATOR, password=None)
    commands.change_project_settings(database, {"target_raters": 3})
    data.refresh()
    page = open_page(routes.AGREEMENT)
    button(page, "Share 2 conversations out").click().run()
    assert not page.exception
    names = queries.assigned_names(database, shared_ids)
    assert names == dict.fromkeys(shared_ids, ("cara",))  # Anna and Ben have scored them
    (loads,) = [f.value for f in page.dataframe if "Handled" in f.value.columns]
    assert loads[["Rater", "Conversations"]].to_numpy().tolist() == [["cara", 2]]
    button(page, "Ask them no longer").click().run()
    assert queries.assigned_names(database, shared_ids) == dict.fromkeys(shared_ids, ())


def test_ticked_conversations_are_assigned_from_their_table(open_page, database, shared_ids):
    commands.admit_person(database, "cara", role=UserRole.ANNOTATOR, password=None)
    data.refresh()
    page = open_page(routes.CONVERSATIONS)
    ticked = {"selection": {"rows": [0], "columns": [], "cells": []}}
    page.session_state["conversations.0"] = ticked
    page.run()
    (cara,) = [p.user.id for p in queries.people(database) if p.user.name == "cara"]
    page.multiselect(key="many.people").set_value([cara]).run()
    button(page, "Ask them").click().run()
    assert not page.exception
    assert sorted(queries.assigned_names(database, shared_ids).values()) == [(), ("cara",)]


def test_blind_annotators_see_no_scores_of_others_among_conversations_and_runs(
    open_page, database, shared_ids
):
    run = make_run(database, shared_ids, RunStatus.FINISHED)
    commands.admit_person(database, "local", role=UserRole.ANNOTATOR, password=None)

    def seen() -> str:
        data.refresh()
        one = open_page(routes.CONVERSATIONS, conversation=shared_ids[0])
        table = open_page(routes.CONVERSATIONS).dataframe[0].value
        told = open_page(routes.RUN, run=run.id, tab="Data")
        assert not one.exception and not told.exception
        rewards = [frame.value for frame in told.dataframe if "reward" in frame.value.columns]
        return texts(one.markdown) + str(list(table.columns)) + str(len(rewards))

    open_scores = seen()
    assert "0.90" in open_scores and "Mean score" in open_scores and open_scores.endswith("1")
    commands.change_project_settings(database, {"blind": True})
    hidden = seen()
    assert "0.90" not in hidden and "Mean score" not in hidden and hidden.endswith("0")
