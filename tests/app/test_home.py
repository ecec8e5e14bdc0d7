import pytest
from streamlit.testing.v1 import AppTest

from app import routes
from app.views.home import next_step
from db import queries
from db.engine import Database
from db.examples import EXAMPLE_SETS
from db.records import ConversationFilter, Overview
from tests.app.conftest import OpenPage


def overview(**numbers: int) -> Overview:
    names = ("conversations", "turns", "scored_turns", "runs", "active_runs", "adapters")
    return Overview(**{name: numbers.get(name, 0) for name in names})


@pytest.mark.parametrize(
    ("numbers", "page"),
    [
        ({"conversations": 1}, routes.CONVERSATIONS),
        ({"conversations": 1, "turns": 4}, routes.LABEL),
        ({"conversations": 1, "turns": 4, "scored_turns": 2}, routes.LAUNCH),
        ({"conversations": 1, "turns": 4, "scored_turns": 2, "runs": 1}, routes.LABEL),
        ({"conversations": 1, "turns": 4, "scored_turns": 4, "runs": 1}, routes.LAUNCH),
        ({"turns": 4, "scored_turns": 2, "runs": 1, "active_runs": 1}, routes.RUNS),
    ],
)
def test_the_next_step_follows_from_what_there_is(numbers: dict[str, int], page: str) -> None:
    assert next_step(overview(**numbers)).page == page


def test_an_empty_home_loads_the_example_sets_in_one_click(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.HOME)
    assert app.title[0].value == "Welcome to EveryTurn"
    _button(app, "Load the example sets").click().run()
    assert not app.exception
    sources = set(queries.all_sources(database))
    assert sources == {f"example:{example.name}" for example in EXAMPLE_SETS}
    assert app.metric[0].value == str(queries.overview(database).conversations)


def test_only_the_chosen_example_sets_are_loaded(open_page: OpenPage, database: Database) -> None:
    app = open_page(routes.HOME)
    for box in app.checkbox:
        if box.key != "example.negotiation":
            box.uncheck()
    _button(app.run(), "Load the example sets").click().run()
    assert queries.all_sources(database) == ["example:negotiation"]


def test_home_counts_and_lists_what_there_is(
    open_page: OpenPage, database: Database, conversation_ids: list[int]
) -> None:
    app = open_page(routes.HOME)
    assert not app.exception
    assert [metric.value for metric in app.metric] == ["3", "3 / 6", "0", "0"]
    primary = [button for button in app.button if button.proto.type == "primary"]
    assert [button.label for button in primary] == ["Launch a run"]
    rows = queries.conversation_rows(database, ConversationFilter(), user_id=1)
    assert {row.title for row in rows} == {"Parcel lost", "Used bike", "Markup is text"}


def _button(app: AppTest, label: str):
    return next(button for button in app.button if button.label == label)
