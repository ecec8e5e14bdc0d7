"""A person's own keys: only such as reach the page, and none that gives a score."""

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import LabelAction
from db.errors import DataError
from db.records import DEFAULT_KEYS
from db.setting_values import user_from_json
from tests.db.backends import ON_EVERY_DATABASE


@ON_EVERY_DATABASE
def test_a_key_is_kept_until_it_is_as_delivered_again(database: Database, user_id: int) -> None:
    commands.set_keys(database, user_id=user_id, keys={LabelAction.SKIP: "Ctrl+ArrowRight"})
    keys = queries.user_settings(database, user_id=user_id).keys
    assert keys == {**DEFAULT_KEYS, LabelAction.SKIP: "Ctrl+ArrowRight"}
    commands.set_keys(database, user_id=user_id, keys={})
    assert queries.user_settings(database, user_id=user_id).keys == DEFAULT_KEYS


@ON_EVERY_DATABASE
@pytest.mark.parametrize(
    ("key", "problem"),
    [
        *((key, "score") for key in "07A*+-="),
        *((key, "no such key") for key in ("", " ", "a", "ß", "Escape", "Tab", "F5", "Shift+1")),
        *((key, "no such key") for key in ("Ctrl+5", "Numpad5", "Control+Z", "Ctrl+", "x" * 999)),
        ("F", "two actions"),
    ],
)
def test_what_can_be_no_key_of_an_action_is_refused(
    database: Database, user_id: int, key: str, problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        commands.set_keys(database, user_id=user_id, keys={LabelAction.SKIP: key})
    assert queries.user_settings(database, user_id=user_id).keys == DEFAULT_KEYS


@pytest.mark.parametrize("stored", [{"skip": "A"}, {"skip": 7}, {"skip": None}, {"fly": "K"}, []])
def test_a_stored_key_that_is_none_any_more_counts_as_not_set(stored: object) -> None:
    assert user_from_json({"keys": stored}).keys == DEFAULT_KEYS
