"""Signing in through a provider (OpenID Connect) in a real browser, with `st.login`."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from db import commands, queries
from db.engine import open_database
from db.enums import UserRole
from db.settings import Settings
from tests.browser.conftest import AppServer
from tests.identity import CLIENT_ID, CLIENT_SECRET, running_provider

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WAIT_MS = 30_000

ANN = re.compile(r"ann.*example.*\(admin\)")
"""Invisible signs keep Streamlit from making links of such words."""


def test_a_provider_vouches_for_people_and_an_admin_lets_them_in(
    page: Page, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, database = AppServer(settings), open_database(settings)
    secrets_file = tmp_path / "secrets.toml"
    monkeypatch.setenv("STREAMLIT_SECRETS_FILES", str(secrets_file))
    with running_provider(email="Ann@Example.com", email_verified=True) as provider:
        values = {
            "redirect_uri": f"{server.url}/oauth2callback",
            "cookie_secret": "only for this test, but long enough",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "server_metadata_url": provider.metadata_url,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        secrets_file.write_text("\n".join(["[auth]", *lines]))
        server.start()
        try:
            page.goto(server.url)
            page.get_by_role("button", name="Sign in with your organisation").click()
            expect(page.get_by_text("may not come in")).to_be_visible(timeout=WAIT_MS)
            assert page.get_by_role("link", name="Label").count() == 0

            commands.admit_person(database, "ann@example.com", role=UserRole.ADMIN, password=None)
            page.reload()
            expect(page.get_by_text(ANN)).to_be_visible(timeout=WAIT_MS)
            page.reload()
            expect(page.get_by_text(ANN)).to_be_visible(timeout=WAIT_MS)

            page.get_by_role("button", name="Sign out").click()
            again = page.get_by_role("button", name="Sign in with your organisation")
            expect(again).to_be_visible(timeout=WAIT_MS)

            provider.claims["email_verified"] = False
            again.click()
            page.wait_for_url(f"{server.url}/", timeout=WAIT_MS)
            expect(again).to_be_visible(timeout=WAIT_MS)
            expect(page.get_by_text(ANN)).to_have_count(0)
        finally:
            server.kill()
    assert queries.refusals(database) == []
    database.close()
