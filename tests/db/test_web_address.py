"""What may be stored as a web address, and what is said of the rest."""

import pytest

from db.web_address import address_problem


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "https://a.example.com:8443/v1",
        "http://127.0.0.1:8000",
        "http://[::1]:80",
        "http://xn--fo-fka.de/%C3%A4",
    ],
)
def test_an_address_that_can_be_called(url: str) -> None:
    assert address_problem(url) == ""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("a", "not a web address"),
        ("", "not a web address"),
        ("ftp://a", "not a web address"),
        ("http://", "not a web address"),
        ("http://[", "not a web address"),
        ("http://a:port", "not a web address"),
        ("http://a:99999", "not a web address"),
        ("http://a..b", "not a web address"),
        ("http://a b", "not a web address"),
        ("http://a/\u202eb", "not a web address"),
        ("http://me:secret@a", "no password"),
        ("http://me@a", "no password"),
        ("http://a?key=secret", "no query"),
        ("http://a#part", "no query"),
        ("http://föö.de", "beyond ASCII"),
        ("http://a/ä", "beyond ASCII"),
    ],
)
def test_an_address_that_cannot_be_called_is_told_why(url: str, problem: str) -> None:
    assert problem in address_problem(url)


def test_a_hook_may_have_a_query() -> None:
    assert address_problem("https://a/hook?room=7", with_query=True) == ""
    assert "no query" in address_problem("https://a/hook?room=7#x", with_query=True)
