"""The launch page: what it offers, what it shows of each turn, and what Start does."""

import errno
import json

import pytest

from app import data, routes, token_counts
from db import commands, queries
from db.enums import RunStatus, UserRole
from db.errors import ConflictError
from tests.app.launching import button, texts
from trainer import catalog
from trainer.runs import launch


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are recorded and frozen as always, but their process is not started."""
    monkeypatch.setattr(launch, "start_waiting", lambda database, **_: None)


def test_an_empty_home_sends_people_to_the_data(open_page):
    page = open_page(routes.LAUNCH)
    assert not page.exception
    assert "load an example set" in texts(page.markdown)
    assert not page.button


def test_data_without_any_score_asks_for_scores_first(open_page, database, conversation_ids):
    commands.delete_conversations(database, conversation_ids[:2])
    page = open_page(routes.LAUNCH)
    assert "No conversation of this choice has a score yet" in texts(page.info)


def test_every_turn_of_the_scored_conversations_is_in_the_table(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    assert not page.exception
    frame = page.dataframe[0].value
    assert list(frame["conversation"]) == ["Parcel lost"] * 2 + ["Used bike"] * 2
    assert list(frame["turn"]) == [1, 2, 1, 2]
    assert frame["reward"].tolist()[:2] == [0.8, 0.0]
    assert frame["remark"].tolist()[2] == "no score: context only"
    assert "**2 conversations** · **3 of 4** turns scored" in texts(page.markdown)
    assert "1 conversation without any score left out" in texts(page.markdown)


def test_a_tag_in_the_address_chooses_the_data(open_page, conversation_ids):
    page = open_page(routes.LAUNCH, tags="negotiation")
    assert page.multiselect(key="tags").value == ["negotiation"]
    assert set(page.dataframe[0].value["conversation"]) == {"Used bike"}


def test_the_queues_filters_choose_the_data_and_the_run_says_so(
    open_page, database, conversation_ids
):
    other = commands.admit_person(database, "ann", role=UserRole.ANNOTATOR, password=None)
    (first, _) = queries.conversation(database, conversation_ids[0]).assistant_messages
    assert first.id is not None
    commands.set_score(database, user_id=other.id, message_id=first.id, value=0.6)
    data.refresh()
    page = open_page(routes.LAUNCH, least_raters=1)
    assert set(page.dataframe[0].value["conversation"]) == {"Parcel lost", "Used bike"}
    page.selectbox(key="scored_by").set_value("ann").run()
    assert set(page.dataframe[0].value["conversation"]) == {"Parcel lost"}
    page.selectbox(key="scored_by").set_value(None).run()
    page.toggle(key="mean_score").set_value(True).run()
    page.slider(key="score_range").set_value((-1.0, 0.0)).run()
    assert set(page.dataframe[0].value["conversation"]) == {"Used bike"}
    page.toggle(key="mean_score").set_value(False)
    page.number_input(key="least_raters").set_value(2).run()
    assert not page.exception
    assert set(page.dataframe[0].value["conversation"]) == {"Parcel lost"}
    button(page, "Start the run").click().run()
    (run,) = queries.runs(database)
    assert (run.conversations, run.config["selection"]) == (1, "scored by at least 2 people")


def test_the_recipe_shows_its_own_advantages_and_settings(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    page.radio(key="method").set_value("recipe").run()
    assert not page.exception
    advantages = page.dataframe[0].value["advantage"].tolist()
    assert advantages[:2] == pytest.approx([0.4, -0.4])
    assert page.number_input(key="launch_recipe_epochs").value == 2
    assert page.number_input(key="launch_recipe_adam_eps").value == 1e-12
    assert "launch_recipe_gamma" not in [widget.key for widget in page.number_input]


def test_changed_settings_are_named_and_reach_the_run(open_page, database, conversation_ids):
    page = open_page(routes.LAUNCH)
    page.number_input(key="launch_standard_epochs").set_value(5).run()
    assert "Epochs 5" in texts(page.caption)
    button(page, "Start the run").click().run()
    (run,) = queries.runs(database)
    assert run.config["epochs"] == 5


def test_start_freezes_the_data_and_opens_the_run(open_page, database, settings, conversation_ids):
    page = open_page(routes.LAUNCH)
    next(t for t in page.text_input if t.label == "Name of the run").set_value("Tone").run()
    button(page, "Start the run").click().run()
    assert not page.exception
    (run,) = queries.runs(database)
    assert (run.name, run.conversations, run.turns) == ("Tone", 2, 4)
    frozen = (settings.run_dir(run.id) / "data.jsonl").read_text().splitlines()
    assert [json.loads(line)["title"] for line in frozen] == ["Parcel lost", "Used bike"]
    assert page.query_params["run"] == str(run.id)
    assert "Tone" in texts(page.title)


def test_two_clicks_make_one_run_and_a_changed_form_makes_another(
    open_page, database, conversation_ids, monkeypatch
):
    # The page change after the first click is held back, as when a second click overtakes it.
    monkeypatch.setattr("streamlit.switch_page", lambda *args, **kwargs: None)
    page = open_page(routes.LAUNCH)
    button(page, "Start the run").click().run()
    button(page, "Start the run").click().run()
    assert len(queries.runs(database)) == 1
    page.number_input(key="launch_standard_epochs").set_value(7).run()
    button(page, "Start the run").click().run()
    assert [run.config["epochs"] for run in queries.runs(database)] == [7, 3]


def test_the_same_address_in_two_tabs_starts_one_run_and_a_new_visit_another(
    open_page, database, conversation_ids
):
    page = open_page(routes.LAUNCH)
    token = page.query_params["start"]
    button(page, "Start the run").click().run()
    copied = open_page(routes.LAUNCH, start=token)
    button(copied, "Start the run").click().run()
    assert not copied.exception
    assert [page.query_params["run"], copied.query_params["run"]] == ["1", "1"]
    assert len(queries.runs(database)) == 1
    afresh = open_page(routes.LAUNCH)
    button(afresh, "Start the run").click().run()
    assert len(queries.runs(database)) == 2


def test_equal_scores_block_the_start_and_say_why(open_page, database, conversation_ids):
    commands.delete_conversations(database, conversation_ids[1:])
    user = queries.local_user(database)
    for turn in queries.conversation(database, conversation_ids[0]).assistant_messages:
        assert turn.id is not None
        commands.set_score(database, user_id=user.id, message_id=turn.id, value=0.5)
    data.refresh()
    page = open_page(routes.LAUNCH)
    page.radio(key="method").set_value("recipe").run()
    assert "Every advantage is 0" in texts(page.error)
    assert button(page, "Start the run").disabled


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "x" * 400, "a\0b", "a/" + "b" * 4000])
def test_a_model_name_that_no_folder_can_have_is_explained(open_page, conversation_ids, name):
    page = open_page(routes.LAUNCH, model=name)
    assert not page.exception
    assert "model" in texts(page.error)
    assert "Start the run" not in [b.label for b in page.button]


def test_a_full_disk_is_explained_and_the_next_click_is_a_new_try(
    open_page, database, conversation_ids, monkeypatch
):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    page = open_page(routes.LAUNCH)
    with monkeypatch.context() as patched:
        patched.setattr(launch, "write_json", full)
        button(page, "Start the run").click().run()
    assert not page.exception
    assert "space" in texts(page.error)
    button(page, "Start the run").click().run()
    assert not page.exception
    assert not page.error
    failed = [run.status is RunStatus.FAILED for run in queries.runs(database)]
    assert failed == [False, True]


def test_a_count_that_cannot_be_started_does_not_stand_in_the_way(
    open_page, conversation_ids, monkeypatch
):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(catalog, "is_model_folder", lambda folder: True)
    monkeypatch.setattr(token_counts, "_start", full)
    page = open_page(routes.LAUNCH)
    assert not page.exception
    assert "No space left on device" in texts(page.caption)
    assert not button(page, "Start the run").disabled


def test_a_model_that_does_not_exist_is_named_and_nothing_can_start(open_page, conversation_ids):
    page = open_page(routes.LAUNCH, model="no such model")
    assert not page.exception
    assert "There is no such model" in texts(page.error)
    assert "Start the run" not in [b.label for b in page.button]


def test_a_model_that_is_not_here_yet_says_how_to_pull_it(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    assert "not here yet" in texts(page.markdown)
    assert "python -m trainer pull" in texts(page.markdown)
    assert "Token counts appear once the model is on this machine" in texts(page.caption)


def test_a_refused_start_is_shown_in_words(open_page, conversation_ids, monkeypatch):
    def refuse(*args, **kwargs):
        raise ConflictError("the disk is full", remedy="Free some space.")

    page = open_page(routes.LAUNCH)
    monkeypatch.setattr("trainer.runs.launch.start_run", refuse)
    button(page, "Start the run").click().run()
    assert not page.exception
    assert "The disk is full" in texts(page.error)
