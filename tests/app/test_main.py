import pytest
from streamlit.testing.v1 import AppTest

from app import routes
from db.settings import Settings
from tests.app.conftest import MAIN, OpenPage

DATA_PAGES = (routes.HOME, routes.CONVERSATIONS, routes.LABEL)


@pytest.mark.parametrize("page", DATA_PAGES)
def test_every_page_opens_on_an_empty_database_with_a_first_action(
    open_page: OpenPage, page: str
) -> None:
    app = open_page(page)
    assert not app.exception
    assert not app.error
    assert len(app.main.button) + len(app.main.get("page_link")) > 0


@pytest.mark.parametrize("page", DATA_PAGES)
def test_every_page_opens_with_conversations(
    open_page: OpenPage, conversation_ids: list[int], page: str
) -> None:
    app = open_page(page)
    assert not app.exception
    assert not app.error


def test_the_sidebar_says_who_is_here(open_page: OpenPage) -> None:
    app = open_page(routes.HOME)
    assert any("local" in caption.value for caption in app.sidebar.caption)


def test_an_unusable_database_is_explained_instead_of_a_traceback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("nonsense", "sqlite://"):
        monkeypatch.setenv("DATABASE_URL", address)
        app = AppTest.from_file(str(MAIN), default_timeout=30).run()
        assert not app.exception
        assert "DATABASE" in app.error[0].value.replace("\\_\u2060", "_")


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 18, "-1", "²", "1.5", "0", "\u0661", ""])
def test_an_address_with_an_impossible_number_opens_all_the_same(
    open_page: OpenPage, conversation_ids: list[int], number: str
) -> None:
    for page, name in (
        (routes.CONVERSATIONS, "conversation"),
        (routes.LABEL, "turn"),
        (routes.RUN, "run"),
    ):
        assert not open_page(page, **{name: number}).exception
