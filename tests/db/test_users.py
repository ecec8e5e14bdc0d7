"""Who may come in: names, passwords, sessions, failed attempts, and the log of refusals."""

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from db import commands, passwords, queries
from db.commands import sessions
from db.commands.sessions import MAX_OF_ADDRESS, MAX_OF_BOTH, MAX_OF_NAME, TooManyAttemptsError
from db.engine import Database
from db.enums import UserRole
from db.errors import DataError, NotFoundError, SettingsError
from db.models import SignInFailureTable
from tests.db.backends import ON_EVERY_DATABASE
from tests.db.building import scored_talk

pytestmark = [ON_EVERY_DATABASE, pytest.mark.usefixtures("quick_hashes")]

RIGHT = "correct horse battery"
HOUR = timedelta(hours=1)


def admit(database: Database, name: str = "ann", role: UserRole = UserRole.ANNOTATOR) -> int:
    return commands.admit_person(database, name, role=role, password=RIGHT).id


def attempt(
    database: Database,
    *,
    name: str = "ann",
    password: str = RIGHT,
    address: str = "10.0.0.1",
    lasts: timedelta = HOUR,
) -> str | None:
    return commands.sign_in(database, name=name, password=password, address=address, lasts=lasts)


def test_a_right_password_opens_a_session_and_a_wrong_one_does_not(database: Database) -> None:
    id = admit(database)
    assert attempt(database, password="correct horse batterz") is None
    token = attempt(database)
    assert token is not None
    user = queries.session_user(database, token)
    assert user is not None
    assert (user.id, user.name, user.role) == (id, "ann", UserRole.ANNOTATOR)
    assert queries.session_user(database, f"{token}x") is None
    assert queries.session_user(database, "") is None


def test_a_session_ends_when_it_expires_or_is_signed_out(database: Database) -> None:
    admit(database)
    expired = attempt(database, lasts=timedelta(0))
    assert expired is not None
    assert queries.session_user(database, expired) is None
    here, elsewhere = attempt(database), attempt(database)
    assert here is not None
    assert elsewhere is not None
    commands.sign_out(database, here)
    assert queries.session_user(database, here) is None
    assert queries.session_user(database, elsewhere) is not None


@pytest.mark.parametrize("change", ["removed", "another password", "another role"])
def test_a_session_ends_when_its_person_is_changed(database: Database, change: str) -> None:
    admit(database)
    token = attempt(database)
    assert token is not None
    match change:
        case "removed":
            commands.dismiss_person(database, "ann")
        case "another password":
            commands.admit_person(
                database, "ann", role=UserRole.ANNOTATOR, password="another password"
            )
        case _:
            admit(database, role=UserRole.ADMIN)
    assert queries.session_user(database, token) is None


def test_a_removed_person_keeps_the_scores_and_cannot_come_back(database: Database) -> None:
    admit(database)
    id = commands.add_conversation(database, scored_talk(("hello", 0.5), rater="ann"))
    commands.dismiss_person(database, "ann")
    assert attempt(database) is None
    assert [s.rater for s in queries.conversation(database, id).messages[1].scores] == ["ann"]
    (person,) = queries.people(database)
    assert (person.user.name, person.may_sign_in, person.scores) == ("ann", False, 1)
    with pytest.raises(NotFoundError):
        commands.dismiss_person(database, "ann")


def test_a_rater_that_only_a_file_names_may_not_come_in(database: Database) -> None:
    commands.add_conversation(database, scored_talk(("hello", 0.5), rater="boss@example.com"))
    assert queries.admitted_user(database, "boss@example.com") is None
    passwords.set_password(database.settings, "boss@example.com", RIGHT)
    assert attempt(database, name="boss@example.com") is None


def test_a_name_that_differs_in_capitals_is_the_same_person_for_a_provider(
    database: Database,
) -> None:
    commands.admit_person(database, "Zoë@Example.com", role=UserRole.ADMIN, password=None)
    found = queries.admitted_user(database, "ZOË@example.COM")
    assert found is not None
    assert found.name == "Zoë@Example.com"
    commands.admit_person(database, "zoë@example.com", role=UserRole.ANNOTATOR, password=None)
    assert queries.admitted_user(database, "Zoë@Example.com") is None  # whom would it mean?


def test_guessing_one_name_is_stopped_even_for_the_right_password(database: Database) -> None:
    admit(database)
    for _ in range(MAX_OF_BOTH):
        assert attempt(database, password="wrong") is None
    with pytest.raises(TooManyAttemptsError, match="15 min"):
        attempt(database)
    assert attempt(database, address="10.0.0.2") is not None  # the person elsewhere gets in


def test_many_guesses_at_once_are_no_way_around_the_limit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(database)
    looked_at: list[str] = []
    monkeypatch.setattr(sessions, "is_right", lambda *a: looked_at.append(a[2]))

    def guess(number: int) -> None:
        with pytest.raises(TooManyAttemptsError):
            attempt(database, password=f"guess {number}")
            raise TooManyAttemptsError(HOUR)  # this one was looked at

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(guess, range(40)))
    assert len(looked_at) == MAX_OF_BOTH


def test_trying_many_names_from_one_address_is_stopped(database: Database) -> None:
    for number in range(MAX_OF_ADDRESS):
        assert attempt(database, name=f"name {number}", password="wrong") is None
    with pytest.raises(TooManyAttemptsError):
        attempt(database, name="another")


def test_guessing_one_name_from_many_addresses_is_stopped(database: Database) -> None:
    for number in range(MAX_OF_NAME):
        assert attempt(database, password="wrong", address=f"10.1.0.{number}") is None
    with pytest.raises(TooManyAttemptsError):
        attempt(database, address="10.2.0.1")


def test_a_right_password_takes_back_its_own_failures_only(database: Database) -> None:
    admit(database)
    for _ in range(MAX_OF_BOTH - 1):
        attempt(database, password="wrong")
    assert attempt(database) is not None
    for _ in range(MAX_OF_BOTH):
        assert attempt(database, password="wrong") is None
    with pytest.raises(TooManyAttemptsError):
        attempt(database)


def test_old_failures_no_longer_count(database: Database) -> None:
    admit(database)
    for _ in range(MAX_OF_BOTH):
        attempt(database, password="wrong")
    with database.session() as session:
        for row in session.query(SignInFailureTable):
            row.at -= sessions.WINDOW
    assert attempt(database) is not None


@pytest.mark.parametrize(
    "name", ["", "  ", "a\nb", "a\x00b", "\ud800", "x" * 101, "a\u202eb"], ids=repr
)
def test_an_unusable_name_is_refused(database: Database, name: str) -> None:
    with pytest.raises(DataError, match="name"):
        commands.admit_person(database, name, role=UserRole.ADMIN, password=RIGHT)
    assert not passwords.is_listed(database.settings)


@pytest.mark.parametrize("password", ["short", "x" * 1001, ""])
def test_a_password_that_is_too_short_or_too_long_is_refused(
    database: Database, password: str
) -> None:
    with pytest.raises(DataError, match="password"):
        commands.admit_person(database, "ann", role=UserRole.ADMIN, password=password)
    assert queries.people(database) == []


def test_any_text_may_be_tried_as_name_and_password(database: Database) -> None:
    admit(database)
    for name, password in (
        ("\ud800", "\ud800" * 12),
        ("\x00", "\x00"),
        ("x" * 10_000, "y" * 10_000),
    ):
        assert attempt(database, name=name, password=password) is None


def test_a_password_is_the_same_however_a_keyboard_spells_it(database: Database) -> None:
    commands.admit_person(database, "ann", role=UserRole.ADMIN, password="cafe\u0301 au lait")
    assert attempt(database, password="caf\u00e9 au lait") is not None


def test_the_list_is_for_the_owners_eyes_and_holds_no_password(database: Database) -> None:
    admit(database)
    file = database.settings.passwords_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert "$argon2id$" in text
    assert RIGHT not in text


@pytest.mark.parametrize("content", ["", "[]", '{"ann": 1}', "\x80"])
def test_a_damaged_list_lets_nobody_in(database: Database, content: str) -> None:
    admit(database)
    database.settings.passwords_file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SettingsError, match="password list"):
        passwords.is_listed(database.settings)
    with pytest.raises(SettingsError):
        attempt(database)


def test_refusals_are_kept_newest_first_and_not_without_end(
    database: Database, user_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_REFUSALS", 3)
    for number in range(5):
        commands.log_refusal(
            database,
            user=queries.local_user(database) if number % 2 else None,
            name="x" * 1000,
            action=f"try {number}",
            reason="no\x00",
        )
    assert [refusal.action for refusal in queries.refusals(database)] == ["try 4", "try 3", "try 2"]
    assert len(queries.refusals(database)[0].name) == 200
