"""Launch with the scores of several people, and launch again from an earlier run."""

import pytest

from app import data, launch_again, routes
from db import commands, queries
from db.enums import RunStatus
from tests.app.conftest import chat
from tests.app.launching import button, texts
from tests.app.rows import make_run
from tests.app.test_agreement import rated
from trainer.config import Preset, TrainConfig
from trainer.runs import launch


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are recorded and frozen as always, but their process is not started."""
    monkeypatch.setattr(launch, "start_waiting", lambda database, **_: None)


@pytest.fixture
def shared_ids(database) -> list[int]:
    """Two conversations that several people scored; the first turn is decided."""
    ids, _ = commands.add_conversations(
        database,
        [
            rated("Apart", {"anna": 0.9, "ben": 0.1, "cara": 0.2}, {"anna": 0.8}),
            rated("Alike", {"anna": 0.5, "ben": 0.5}, {"ben": 0.2}),
        ],
    )
    user = queries.local_user(database)
    (first, _) = queries.conversation(database, ids[0]).assistant_messages
    commands.adjudicate(database, user_id=user.id, message_id=first.id, value=0.0)
    data.refresh()
    return ids


def rewards(page) -> list[float | None]:
    column = page.dataframe[0].value["reward"]
    return [None if gone else round(value, 3) for value, gone in zip(column, column.isna())]  # noqa: B905


def test_one_rater_is_no_question(open_page, conversation_ids):
    page = open_page(routes.LAUNCH)
    assert "scores" not in [box.key for box in page.selectbox]


def test_each_way_changes_the_table_at_once_and_is_stored_with_the_run(
    open_page, database, settings, shared_ids
):
    page = open_page(routes.LAUNCH)
    assert "2 turns with scores of more than one person · 1 adjudicated" in texts(page.caption)
    assert rewards(page) == [0.0, 0.8, 0.5, 0.2]
    page.selectbox(key="scores").set_value("mean").run()
    assert rewards(page) == [0.4, 0.8, 0.5, 0.2]
    page.selectbox(key="scores").set_value("median").run()
    assert rewards(page) == [0.2, 0.8, 0.5, 0.2]
    page.selectbox(key="scores").set_value("one_rater").run()
    page.selectbox(key="rater").set_value("ben").run()
    assert not page.exception
    assert rewards(page) == [0.1, None, 0.5, 0.2]
    button(page, "Start the run").click().run()
    (run,) = queries.runs(database)
    assert (run.config["aggregation"], run.config["rater"]) == ("one_rater", "ben")
    assert "one_rater" in (settings.run_dir(run.id) / "config.json").read_text()


def test_the_projects_own_way_is_offered_first(open_page, database, shared_ids):
    commands.change_project_settings(database, {"aggregation": "median"})
    data.refresh()
    page = open_page(routes.LAUNCH)
    assert page.selectbox(key="scores").value == "median"
    assert rewards(page)[0] == 0.2


def test_a_run_again_begins_with_its_settings_its_change_and_its_conversations(
    open_page, database, conversation_ids
):
    config = TrainConfig.for_preset(Preset.RECIPE, epochs=9, token_budget=4096)
    run = make_run(database, conversation_ids[:1], RunStatus.FAILED, config=config)
    commands.add_conversation(database, chat("New", ("q", "a", 0.3), ("r", "b", 0.9)))
    data.refresh()
    page = open_page(routes.LAUNCH, **launch_again.params(run.id, {"token_budget": 1024}))
    assert not page.exception
    assert f"Run {run.id}, **Tone**, again, with Tokens a pass 1024" in texts(page.info).replace(
        "\u2060", ""
    )
    assert page.radio(key="method").value == "recipe"
    assert set(page.dataframe[0].value["conversation"]) == {"Parcel lost"}
    button(page, "Start the run").click().run()
    started = next(r for r in queries.runs(database) if r.id != run.id)
    assert (started.config["epochs"], started.config["token_budget"]) == (9, 1024)
    assert started.config["preset"] == "recipe"
    assert started.conversations == 1


def test_a_run_again_can_take_other_conversations_and_another_method(
    open_page, database, conversation_ids
):
    run = make_run(database, conversation_ids[:1], RunStatus.FINISHED, config=TrainConfig(epochs=9))
    page = open_page(routes.LAUNCH, **launch_again.params(run.id))
    page.radio(key="data").set_value("others").run()
    assert set(page.dataframe[0].value["conversation"]) == {"Parcel lost", "Used bike"}
    page.radio(key="method").set_value("recipe").run()
    assert page.number_input(key="launch_recipe_epochs").value == 2


def test_an_address_of_a_run_that_is_gone_is_explained_and_the_page_works(
    open_page, conversation_ids
):
    page = open_page(routes.LAUNCH, from_run="99")
    assert not page.exception
    assert "run 99" in texts(page.error)
    assert not button(page, "Start the run").disabled
