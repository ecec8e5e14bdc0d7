"""Signing in, by a password and through a provider, in a real browser, at one server for both."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from db import commands, queries
from db.engine import Database, open_database
from db.enums import UserRole
from db.settings import read_settings
from tests.browser.conftest import AppServer
from tests.db.building import scored_talk
from tests.identity import CLIENT_ID, CLIENT_SECRET, IdentityProvider, running_provider

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "correct horse battery"
WAIT_MS = 30_000

ANN = re.compile(r"ann.*example.*\(admin\)")
"""Invisible signs keep Streamlit from making links of such words."""


@dataclass(frozen=True, slots=True)
class Site:
    """A server at which people sign in, its database, and the provider that it trusts."""

    server: AppServer
    database: Database
    provider: IdentityProvider


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with a provider (OpenID Connect, by `st.login`); nobody has been let in yet."""
    folder = tmp_path_factory.mktemp("site")
    with (
        pytest.MonkeyPatch.context() as patch,
        running_provider(email="Ann@Example.com", email_verified=True) as provider,
    ):
        patch.setenv("EVERYTURN_HOME", str(folder / "home"))
        patch.delenv("DATABASE_URL", raising=False)
        patch.setenv("STREAMLIT_SECRETS_FILES", str(folder / "secrets.toml"))
        server = AppServer(read_settings())
        values = {
            "redirect_uri": f"{server.url}/oauth2callback",
            "cookie_secret": "only for this test, but long enough",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "server_metadata_url": provider.metadata_url,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        (folder / "secrets.toml").write_text("\n".join(["[auth]", *lines]))
        database = open_database(read_settings())
        server.start()
        yield Site(server, database, provider)
        server.kill()
        database.close()


def test_a_provider_vouches_for_people_and_an_admin_lets_them_in(page: Page, site: Site) -> None:
    page.goto(site.server.url)
    page.get_by_role("button", name="Sign in with your organisation").click()
    expect(page.get_by_text("may not come in")).to_be_visible(timeout=WAIT_MS)
    assert page.get_by_role("link", name="Label").count() == 0

    commands.admit_person(site.database, "ann@example.com", role=UserRole.ADMIN, password=None)
    page.reload()
    expect(page.get_by_text(ANN)).to_be_visible(timeout=WAIT_MS)
    page.reload()
    expect(page.get_by_text(ANN)).to_be_visible(timeout=WAIT_MS)

    page.get_by_role("button", name="Sign out").click()
    again = page.get_by_role("button", name="Sign in with your organisation")
    expect(again).to_be_visible(timeout=WAIT_MS)

    site.provider.claims["email_verified"] = False
    again.click()
    page.wait_for_url(f"{site.server.url}/", timeout=WAIT_MS)
    expect(again).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text(ANN)).to_have_count(0)
    assert queries.refusals(site.database) == []


@pytest.mark.usefixtures("quick_hashes")
def test_a_score_shown_as_saved_and_a_sign_in_outlive_the_web_process(
    page: Page, site: Site
) -> None:
    for name, role in (("cleo", UserRole.ADMIN), ("bob", UserRole.ANNOTATOR)):
        commands.admit_person(site.database, name, role=role, password=PASSWORD)
    turns = [(f"reply {number}", None) for number in range(3)]
    id = commands.add_conversation(site.database, scored_talk(*turns))
    address = f"{site.server.url}/label?conversation={id}"

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
    site.server.kill()
    (score,) = queries.conversation(site.database, id).assistant_messages[0].scores
    assert (score.rater, score.value) == ("bob", 0.8)

    site.server.start()
    page.goto(address)
    expect(page.get_by_text("0.80 saved").first).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("bob").first).to_be_visible(timeout=WAIT_MS)

    other = page.context.new_page()  # the session ends in one window while another one labels
    other.goto(site.server.url)
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_label("Password")).to_be_visible(timeout=WAIT_MS)
    page.keyboard.press("9")
    expect(page.get_by_text("Nobody is signed in").first).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("encountered an error")).to_have_count(0)
    page.goto(address)
    expect(page.get_by_label("Password")).to_be_visible(timeout=WAIT_MS)
    assert len(queries.score_events(site.database)) == 1


def _sign_in(page: Page, password: str) -> None:
    page.get_by_label("Name").fill("bob")
    page.get_by_label("Password").fill(password)
    page.get_by_label("Password").press("Enter")
