"""Forged requests of every kind, by everybody in turn: each is refused and logged, nothing changes."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from app import auth, data, permissions
from db import commands, queries
from db.engine import open_database
from db.enums import UserRole
from db.records import User
from db.settings import Settings
from tests.db.building import scored_talk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROUNDS = 150
"""So many attempts at least."""

ADMINS_ONLY: list[Callable[..., Any]] = [
    command
    for command in (vars(commands)[name] for name in commands.__all__)
    if not isinstance(command, type) and command not in permissions.EVERYBODY
]


def test_no_forged_request_changes_anything(
    settings: Settings, more_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, chance = open_database(settings), random.Random(5)
    people = [
        commands.admit_person(database, name, role=role, password=None)
        for name, role in (
            ("ann", UserRole.ADMIN),
            ("bob", UserRole.ANNOTATOR),
            ("eve", UserRole.ANNOTATOR),
        )
    ]
    conversation = commands.add_conversation(database, scored_talk(("a", 0.5), ("b", None)))
    before = (queries.conversation(database, conversation), queries.people(database))

    until, attempts = time.monotonic() + more_s, 0
    while attempts < ROUNDS or time.monotonic() < until:
        actor = chance.choice(people)
        monkeypatch.setattr(auth, "acting_user", lambda actor=actor: actor)
        command, claimed = _forged(actor, people, chance)
        with pytest.raises(permissions.RefusedError):
            data.write(command, **claimed)
        (logged, *_) = queries.refusals(database, limit=1)
        assert (logged.name, logged.action) == (actor.name, command.__name__.replace("_", " "))
        attempts += 1
    assert (queries.conversation(database, conversation), queries.people(database)) == before
    database.close()
    print(f"\n{attempts} forged requests refused")  # noqa: T201 - what `make soak` shows


def _forged(
    actor: User, people: list[User], chance: random.Random
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return something that this person may not do."""
    if actor.role is UserRole.ANNOTATOR and chance.random() < 0.5:
        return chance.choice(ADMINS_ONLY), {}
    others = [person.id for person in people if person is not actor]
    pretended = chance.choice([*others, None, str(actor.id), -actor.id, float(actor.id) + 0.5])
    own = sorted(permissions.EVERYBODY, key=lambda command: command.__name__)
    return chance.choice(own), {permissions.ACTOR: pretended}
