"""Endpoints: named, changed, forgotten; never with a key in them."""

import pytest

from db import commands, queries
from db.engine import Database
from db.errors import DataError, NotFoundError
from db.records import Endpoint
from tests.db.backends import ON_EVERY_DATABASE

pytestmark = ON_EVERY_DATABASE


def test_the_same_name_changes_an_endpoint_and_forgetting_it_leaves_none(
    database: Database,
) -> None:
    commands.set_endpoint(database, "b", base_url="http://b:1", key_variable="")
    commands.set_endpoint(database, " a ", base_url="http://a:1/", key_variable="KEY")
    commands.set_endpoint(database, "b", base_url="https://b", key_variable="KEY_B")
    assert queries.endpoints(database) == [
        Endpoint(name="a", base_url="http://a:1", key_variable="KEY"),
        Endpoint(name="b", base_url="https://b", key_variable="KEY_B"),
    ]
    commands.forget_endpoint(database, "b")
    with pytest.raises(NotFoundError, match="no endpoint called 'b'"):
        queries.endpoint(database, "b")


@pytest.mark.parametrize(
    ("name", "url", "variable", "where"),
    [
        ("", "http://a", "", "name"),
        ("a/b", "http://a", "", "name"),
        ("a", "a", "", "address"),
        ("a", "ftp://a", "", "address"),
        ("a", "http://me:secret@a", "", "address"),
        ("a", "http://a?key=secret", "", "address"),
        ("a", "http://a:port", "", "address"),
        ("a", "http://a", "tml-a-key-itself", "variable"),
    ],
)
def test_what_cannot_be_an_endpoint_is_refused(
    database: Database, name: str, url: str, variable: str, where: str
) -> None:
    with pytest.raises(DataError, match=where):
        commands.set_endpoint(database, name, base_url=url, key_variable=variable)
    assert queries.endpoints(database) == []
