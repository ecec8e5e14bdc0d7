"""Signing in with a password in a real browser, and a web process that is killed after "saved"."""

import pytest
from playwright.sync_api import Page, expect

from db import commands, queries
from db.engine import open_database
from db.enums import UserRole
from db.settings import Settings
from tests.browser.conftest import AppServer
from tests.db.building import scored_talk

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("quick_hashes")]

PASSWORD = "correct horse battery"
WAIT_MS = 30_000


def test_a_score_shown_as_saved_and_a_sign_in_outlive_the_web_process(
    app_server: AppServer, page: Page, settings: Settings
) -> None:
    database = open_database(settings)
    for name, role in (("ann", UserRole.ADMIN), ("bob", UserRole.ANNOTATOR)):
        commands.admit_person(database, name, role=role, password=PASSWORD)
    turns = [(f"reply {number}", None) for number in range(3)]
    id = commands.add_conversation(database, scored_talk(*turns))
    address = f"{app_server.url}/label?conversation={id}"

    page.goto(address)
    _sign_in(page, "wrong password")
    expect(page.get_by_text("Name or password is wrong.")).to_be_visible(timeout=WAIT_MS)
    _sign_in(page, PASSWORD)
    expect(page.get_by_text("Keys are awake")).to_be_visible(timeout=WAIT_MS)
    assert page.url.startswith(address)  # where one wanted to go
    assert "everyturn_session" not in page.evaluate("document.cookie")
    expect(page.get_by_role("link", name="Launch")).to_have_count(0)

    page.keyboard.press("8")
    expect(page.get_by_text("0.80 saved").first).to_be_visible(timeout=WAIT_MS)
    app_server.kill()
    (score,) = queries.conversation(database, id).assistant_messages[0].scores
    assert (score.rater, score.value) == ("bob", 0.8)

    app_server.start()
    page.goto(address)
    expect(page.get_by_text("0.80 saved").first).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("bob").first).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible(timeout=WAIT_MS)
    page.goto(address)
    expect(page.get_by_label("Password")).to_be_visible(timeout=WAIT_MS)
    database.close()


def _sign_in(page: Page, password: str) -> None:
    page.get_by_label("Name").fill("bob")
    page.get_by_label("Password").fill(password)
    page.get_by_label("Password").press("Enter")
