"""The settings page: what is saved, what is refused, and what others changed meanwhile."""

import pytest
from streamlit.testing.v1 import AppTest

from app import auth, routes
from db import commands, queries
from db.engine import Database
from db.enums import LabelAction, ScoreScale, UserRole
from db.errors import DataError
from db.records import User
from tests.app.conftest import OpenPage


def button(app: AppTest, label: str, nth: int = 0) -> AppTest:
    return [b for b in app.button if b.label == label][nth].click().run()


def test_settings_are_saved_together(open_page: OpenPage, database: Database) -> None:
    app = open_page(routes.SETTINGS)
    app.radio(key="settings.project.scale").set_value(ScoreScale.STARS)
    app.toggle(key="settings.project.blind").set_value(True)
    app.text_area(key="settings.project.guidelines").set_value("**kind** <script>")
    app.text_input(key="settings.project.webhook_url").set_value(" https://example.com/x ")
    app = button(app, "Save")
    assert not app.exception
    saved = queries.project_settings(database)
    assert (saved.scale, saved.blind) == (ScoreScale.STARS, True)
    assert (saved.guidelines, saved.webhook_url) == ("**kind** <script>", "https://example.com/x")
    assert app.radio(key="settings.project.scale").value is ScoreScale.STARS


def test_a_wrong_value_is_explained_and_nothing_is_saved(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.SETTINGS)
    app.toggle(key="settings.project.blind").set_value(True)
    app.text_input(key="settings.project.webhook_url").set_value("ftp://x")
    app = button(app, "Save")
    assert "web address" in app.error[0].value
    assert queries.project_settings(database).blind is False


def test_a_hook_with_a_password_in_its_address_is_not_stored(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.SETTINGS)
    app.text_input(key="settings.project.webhook_url").set_value("https://me:secret@example.com")
    app = button(app, "Save")
    assert "no password" in app.error[0].value
    assert queries.project_settings(database).webhook_url == ""


def test_saving_keeps_what_another_admin_changed_meanwhile(
    open_page: OpenPage, database: Database
) -> None:
    app = open_page(routes.SETTINGS)
    commands.change_project_settings(database, {"target_raters": 3})
    app.toggle(key="settings.project.blind").set_value(True)
    button(app, "Save")
    saved = queries.project_settings(database)
    assert (saved.blind, saved.target_raters) == (True, 3)


def test_keys_are_saved_and_taken_back(open_page: OpenPage, database: Database, user: User) -> None:
    app = open_page(routes.SETTINGS)
    app.selectbox(key="settings.key.skip").set_value("K")
    app = button(app, "Save", 1)
    assert queries.user_settings(database, user_id=user.id).keys[LabelAction.SKIP] == "K"
    app = button(app, "Back to the keys as delivered")
    assert queries.user_settings(database, user_id=user.id).keys[LabelAction.SKIP] == "S"
    assert app.selectbox(key="settings.key.skip").value == "S"


def test_one_key_for_two_actions_is_refused(
    open_page: OpenPage, database: Database, user: User
) -> None:
    app = open_page(routes.SETTINGS)
    app.selectbox(key="settings.key.skip").set_value("F")
    app = button(app, "Save", 1)
    assert "two actions" in app.error[0].value
    assert queries.user_settings(database, user_id=user.id).keys[LabelAction.SKIP] == "S"


@pytest.mark.parametrize(
    "changes",
    [
        {"target_raters": 0},
        {"target_raters": True},
        {"scale": "percent"},
        {"webhook_url": "https://exa mple.com"},
        {"webhook_url": "http://[::1"},
        {"nonsense": 1},
        {"guidelines": "x" * 50_001},
    ],
)
def test_no_impossible_setting_enters_the_database(
    database: Database, changes: dict[str, object]
) -> None:
    with pytest.raises(DataError):
        commands.change_project_settings(database, changes)


def test_an_admin_sees_people_and_refused_attempts(
    open_page: OpenPage, database: Database, user: User, conversation_ids: list[int]
) -> None:
    commands.log_refusal(database, user=user, name="<b>eve</b>", action="delete", reason="no")
    app = open_page(routes.SETTINGS)
    people, refusals = (frame.value for frame in app.dataframe)
    assert list(people["Name"]) == ["local"]
    assert list(people["Scored turns"]) == [3]
    assert list(refusals["Who"]) == ["<b>eve</b>"]


def test_an_annotator_reads_the_project_and_sets_only_their_own_keys(
    open_page: OpenPage, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = commands.admit_person(database, "bob", role=UserRole.ANNOTATOR, password=None)
    commands.change_project_settings(database, {"guidelines": "be *kind*", "blind": True})
    for name in ("current_user", "acting_user"):
        monkeypatch.setattr(auth, name, lambda: bob)
    app = open_page(routes.SETTINGS)
    assert not app.exception
    assert [b.label for b in app.main.button] == ["Save", "Back to the keys as delivered"]
    assert len(app.dataframe) == 0
    app.selectbox(key="settings.key.skip").set_value("K")
    button(app, "Save")
    assert queries.user_settings(database, user_id=bob.id).keys[LabelAction.SKIP] == "K"
