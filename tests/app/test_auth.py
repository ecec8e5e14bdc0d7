"""Who looks at a page, what they may change, and what is refused and logged."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import auth, data, downloads, permissions, routes, sign_in_ways
from app.import_jobs import receive
from db import commands, queries
from db.engine import Database
from db.enums import ReviewState, UserRole
from db.errors import EveryTurnError
from db.records import User
from tests.app.conftest import MAIN, OpenPage
from trainer.runs.launch import request_stop, start_run
from trainer.runs.remove import remove_run

pytestmark = pytest.mark.usefixtures("quick_hashes")

HOUR = timedelta(hours=1)
PASSWORD = "correct horse battery"

SignIn = Callable[[User], str]


@pytest.fixture
def people(database: Database) -> Mapping[str, User]:
    """An admin and two annotators who sign in with a password."""
    roles = {"ann": UserRole.ADMIN, "bob": UserRole.ANNOTATOR, "eve": UserRole.ANNOTATOR}
    return {
        name: commands.admit_person(database, name, role=role, password=PASSWORD)
        for name, role in roles.items()
    }


@pytest.fixture
def sign_in(database: Database, monkeypatch: pytest.MonkeyPatch) -> SignIn:
    """Return a function that makes a person the one whose browser it is, and returns the token."""

    def become(user: User) -> str:
        token = commands.sign_in(
            database, name=user.name, password=PASSWORD, address="10.0.0.1", lasts=HOUR
        )
        assert token is not None
        monkeypatch.setattr(auth, "_token", lambda: token)
        return token

    return become


def told(app: AppTest) -> str:
    return "\n".join(element.value for element in (*app.error, *app.info, *app.warning))


def test_alone_on_this_machine_everybody_is_the_local_user(user: User) -> None:
    assert auth.current_user() == auth.acting_user() == user
    assert user.role is UserRole.ADMIN
    assert not auth.people_sign_in()


@pytest.mark.parametrize("address", [None, "", "0.0.0.0", "::", "192.168.0.7", "example.com"])
def test_beyond_this_machine_nobody_is_anybody_without_sign_in(
    database: Database, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    monkeypatch.setattr(sign_in_ways.st, "get_option", lambda _: address)
    with pytest.raises(auth.NotSignedInError, match="python -m db user add"):
        auth.current_user()
    app = AppTest.from_file(str(MAIN), default_timeout=30).run()
    assert "nobody can sign in yet" in told(app)
    assert not app.sidebar.children


def test_as_soon_as_somebody_may_sign_in_people_have_to(
    people: Mapping[str, User], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_token", str)
    app = open_page(routes.CONVERSATIONS)
    assert not app.exception
    assert [title.value for title in app.title] == ["Sign in"]
    assert not app.sidebar.children
    with pytest.raises(auth.NotSignedInError):
        data.overview()
    with pytest.raises(auth.NotSignedInError):
        data.write(commands.delete_conversations, [1])


def test_a_signed_in_person_is_shown_and_can_leave(
    people: Mapping[str, User], sign_in: SignIn, open_page: OpenPage, database: Database
) -> None:
    token = sign_in(people["bob"])
    app = open_page(routes.HOME)
    assert any("bob" in caption.value for caption in app.sidebar.caption)
    next(b for b in app.sidebar.button if b.label == "Sign out").click().run()
    assert queries.session_user(database, token) is None
    assert [title.value for title in app.title] == ["Sign in"]


def test_a_page_that_stayed_open_writes_nothing_once_its_session_has_ended(
    people: Mapping[str, User],
    sign_in: SignIn,
    database: Database,
    conversation_ids: list[int],
) -> None:
    token = sign_in(people["bob"])
    assert auth.current_user() == people["bob"]  # and believed for a moment
    commands.sign_out(database, token)
    message_id = queries.conversation(database, conversation_ids[1]).messages[1].id
    with pytest.raises(auth.NotSignedInError):
        data.write(commands.set_score, user_id=people["bob"].id, message_id=message_id, value=1.0)
    assert queries.conversation(database, conversation_ids[1]).messages[1].scores == ()


def test_a_new_role_counts_for_the_next_write(
    people: Mapping[str, User], sign_in: SignIn, database: Database, conversation_ids: list[int]
) -> None:
    sign_in(people["ann"])
    assert auth.is_admin()
    commands.admit_person(database, "ann", role=UserRole.ANNOTATOR, password=PASSWORD)
    sign_in(people["ann"])
    with pytest.raises(permissions.RefusedError):
        data.write(commands.delete_conversations, conversation_ids)
    assert len(queries.conversations(database, conversation_ids)) == len(conversation_ids)


FORGED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "delete": (commands.delete_conversations, ([1],), {}),
    "tags": (commands.set_tags, ([1], ("x",)), {}),
    "archive": (commands.set_archived, ([1], True), {}),
    "assign": (commands.assign, ([1], [1]), {}),
    "settings": (commands.change_project_settings, ({"blind": True},), {}),
    "rename a run": (commands.rename_run, (1, "x"), {}),
    "delete a run": (remove_run, (1,), {}),
    "stop": (request_stop, (1,), {}),
    "start": (start_run, (), {"name": "x", "conversation_ids": [1]}),
    "import": (receive, ([],), {"user_id": 2}),
    "admit": (commands.admit_person, ("eve",), {"role": UserRole.ADMIN, "password": None}),
    "dismiss": (commands.dismiss_person, ("ann",), {}),
}


@pytest.mark.parametrize("action", FORGED)
def test_an_annotators_admin_action_is_refused_and_logged(
    people: Mapping[str, User],
    sign_in: SignIn,
    database: Database,
    conversation_ids: list[int],
    action: str,
) -> None:
    sign_in(people["bob"])
    before = queries.conversations(database, conversation_ids)
    command, arguments, keywords = FORGED[action]
    with pytest.raises(permissions.RefusedError, match="only admins"):
        data.write(command, *arguments, **keywords)
    (refusal,) = queries.refusals(database)
    assert (refusal.name, refusal.reason) == ("bob", "only admins may do this")
    assert refusal.action == command.__name__.replace("_", " ")
    assert queries.conversations(database, conversation_ids) == before
    assert queries.project_settings(database).blind is False
    assert queries.admitted_user(database, "ann") == people["ann"]


@pytest.mark.parametrize("who", ["bob", "ann"])
def test_nobody_scores_in_another_persons_name(
    people: Mapping[str, User],
    sign_in: SignIn,
    database: Database,
    conversation_ids: list[int],
    who: str,
) -> None:
    sign_in(people[who])
    eve, id = people["eve"].id, conversation_ids[1]
    message_id = queries.conversation(database, id).messages[1].id
    commands.set_score(database, user_id=eve, message_id=message_id, value=0.25)
    before = queries.conversations(database, conversation_ids)
    forged: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (commands.set_score, {"message_id": message_id, "value": 1.0}),
        (commands.set_score, {"message_id": message_id, "value": None}),
        (commands.set_note, {"message_id": message_id, "note": "forged"}),
        (commands.set_outcome, {"conversation_id": id, "value": 1.0}),
        (commands.set_outcome_note, {"conversation_id": id, "note": "forged"}),
        (commands.set_review, {"conversation_id": id, "state": ReviewState.DONE}),
        (commands.score_remaining, {"conversation_id": id, "value": 1.0}),
        (commands.undo, {}),
        (commands.redo, {}),
        (commands.set_keys, {"keys": {}}),
        (commands.keep_chat, {"conversations": ()}),
    ]
    assert {command for command, _ in forged} == permissions.EVERYBODY
    for command, keywords in forged:
        for claimed in ({"user_id": eve}, {"user_id": None}, {"user_id": str(people[who].id)}, {}):
            with pytest.raises(permissions.RefusedError, match="another person's name"):
                data.write(command, **keywords, **claimed)
    assert len(queries.refusals(database)) == 4 * len(forged)
    assert {refusal.name for refusal in queries.refusals(database)} == {who}
    assert queries.conversations(database, conversation_ids) == before


def test_an_annotator_scores_for_themselves(
    people: Mapping[str, User], sign_in: SignIn, database: Database, conversation_ids: list[int]
) -> None:
    bob = people["bob"]
    sign_in(bob)
    message_id = queries.conversation(database, conversation_ids[1]).messages[1].id
    data.write(commands.set_score, user_id=bob.id, message_id=message_id, value=0.5)
    (score,) = queries.conversation(database, conversation_ids[1]).messages[1].scores
    assert (score.rater, score.value) == ("bob", 0.5)
    assert queries.refusals(database) == []


@pytest.mark.parametrize("page", ["launch", "import", "agreement", "insight"])
def test_an_annotator_sees_no_page_of_the_admins(
    people: Mapping[str, User], sign_in: SignIn, open_page: OpenPage, page: str
) -> None:
    paths = {
        "launch": routes.LAUNCH,
        "import": routes.IMPORTS,
        "agreement": routes.AGREEMENT,
        "insight": routes.INSIGHT,
    }
    sign_in(people["bob"])
    assert "Only admins" in told(open_page(paths[page]))
    sign_in(people["ann"])
    auth._cached_lookup.clear()
    assert "Only admins" not in told(open_page(paths[page]))


@pytest.mark.parametrize(
    "page", [routes.HOME, routes.CONVERSATIONS, routes.LABEL, routes.RUNS, routes.SETTINGS]
)
def test_every_other_page_opens_for_an_annotator(
    people: Mapping[str, User],
    sign_in: SignIn,
    open_page: OpenPage,
    conversation_ids: list[int],
    page: str,
) -> None:
    sign_in(people["bob"])
    app = open_page(page)
    assert not app.exception
    assert not app.error
    assert queries.refusals(data.database()) == []


@pytest.mark.parametrize(
    "params", [{}, {"mode": "new"}, {"conversation": 1}, {"conversation": 1, "mode": "edit"}]
)
def test_an_annotator_is_offered_nothing_that_would_be_refused(
    people: Mapping[str, User],
    sign_in: SignIn,
    open_page: OpenPage,
    conversation_ids: list[int],
    params: dict[str, object],
) -> None:
    sign_in(people["bob"])
    app = open_page(routes.CONVERSATIONS, **params)
    assert not app.exception
    offered = {button.label for button in app.main.button}
    assert offered <= {"Score its turns", "Chat from here", "All conversations"}
    assert not app.main.text_area


def test_an_annotator_waits_for_conversations_on_an_empty_home_page(
    people: Mapping[str, User], sign_in: SignIn, open_page: OpenPage
) -> None:
    sign_in(people["bob"])
    app = open_page(routes.HOME)
    assert "an admin has to add conversations" in told(app)
    assert not app.main.button


def test_a_download_made_at_the_click_is_asked_whose_it_is(
    people: Mapping[str, User], sign_in: SignIn, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit makes it on a thread that knows no page; the page's person has to be brought."""
    token = sign_in(people["ann"])
    of_ann = downloads.for_admins("conversations", lambda: data.overview().conversations)
    sign_in(people["bob"])
    of_bob = downloads.for_admins("conversations", lambda: data.overview().conversations)
    monkeypatch.undo()
    monkeypatch.setenv("EVERYTURN_HOME", str(database.settings.home))
    assert of_ann() == 0
    with pytest.raises(permissions.RefusedError):
        of_bob()
    assert queries.refusals(database)[0].action == "export conversations"
    commands.sign_out(database, token)
    with pytest.raises(auth.NotSignedInError):
        of_ann()


def test_a_damaged_password_list_keeps_everybody_out(
    people: Mapping[str, User], sign_in: SignIn, database: Database
) -> None:
    sign_in(people["ann"])
    database.settings.passwords_file.write_text("[")
    with pytest.raises(EveryTurnError, match="password list"):
        auth.current_user()
