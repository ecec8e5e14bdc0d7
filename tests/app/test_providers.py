"""Signing in through a provider (OpenID Connect): whose word counts, and who comes in by it."""

from datetime import timedelta

import pytest

from app import auth, sign_in_ways
from db import commands
from db.engine import Database
from db.enums import UserRole

CLAIMS = {"email": "ann@example.com", "email_verified": True, "iat": 1000}


@pytest.mark.parametrize(
    ("changes", "section", "relied_on"),
    [
        ({}, {}, True),
        ({"email_verified": False}, {}, False),
        ({"email_verified": "true"}, {}, False),
        ({"email_verified": None}, {}, False),
        ({"email_verified": None}, {"accept_unverified_email": True}, True),
        ({"email_verified": False}, {"accept_unverified_email": True}, False),
        ({"email": None}, {}, False),
        ({"iat": None}, {}, False),
        ({"iat": 1000 - 3601}, {}, False),
    ],
)
def test_a_providers_word_counts_when_it_has_checked_the_address_lately(
    changes: dict[str, object], section: dict[str, object], relied_on: bool
) -> None:
    email = auth.vouched_email({**CLAIMS, **changes}, section, timedelta(hours=1), now_s=1000)
    assert email == ("ann@example.com" if relied_on else "")


def test_a_providers_person_comes_in_only_when_let_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = sign_in_ways.Ways(password=False, providers=("default",))
    monkeypatch.setattr(auth, "ways", lambda: here)
    monkeypatch.setattr(auth, "_provider_person", lambda: "Carl@Example.com")
    with pytest.raises(auth.NotAdmittedError, match="may not come in"):
        auth.current_user()
    carl = commands.admit_person(
        database, "carl@example.com", role=UserRole.ANNOTATOR, password=None
    )
    assert auth.acting_user() == carl


@pytest.mark.parametrize(
    ("section", "providers"),
    [
        ({}, ()),
        ({"client_id": "x", "redirect_uri": "y"}, ("default",)),
        ({"redirect_uri": "y", "okta": {"client_id": "x"}, "google": {"client_id": "z"}},
         ("okta", "google")),
    ],
)  # fmt: skip
def test_providers_are_read_from_the_secrets(
    section: dict[str, object], providers: tuple[str, ...]
) -> None:
    assert sign_in_ways._providers(section) == providers
