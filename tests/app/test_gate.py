"""What stands before the pages: who may connect, and what a password form is answered."""

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from app import browsers, gate, sign_in_ways
from app.gate import Gate, take_password
from db import commands, queries
from db.commands.sessions import MAX_OF_BOTH
from db.engine import Database
from db.enums import UserRole

pytestmark = pytest.mark.usefixtures("quick_hashes")

PASSWORD = "correct horse battery"
HERE = "http://127.0.0.1:8501"

Connect = Callable[..., TestClient]


async def page(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("a page")


async def stream(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("hello")
    await websocket.close()


@pytest.fixture
def connect(database: Database) -> Connect:
    """Return a function that gives a browser in front of the gate."""
    server = Starlette(
        routes=[
            Route("/sign-in", take_password, methods=["POST"]),
            WebSocketRoute("/_stcore/stream", stream),
            Route("/{path:path}", page, methods=["GET", "PUT", "POST"]),
        ],
        middleware=[Middleware(Gate)],
    )

    def browser(url: str = HERE, client: str = "127.0.0.1", **headers: str) -> TestClient:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return TestClient(
            server, url, client=(client, 50_000), headers=names, follow_redirects=False
        )

    return browser


def let_in(database: Database) -> None:
    commands.admit_person(database, "ann", role=UserRole.ADMIN, password=PASSWORD)


def opens(browser: TestClient) -> bool:
    """Whether both a page and the stream of its updates are served."""
    stream_url = f"{str(browser.base_url).replace('http', 'ws', 1)}/_stcore/stream"
    answer = browser.get("/label")
    if answer.status_code == 200:
        with browser.websocket_connect(stream_url) as socket:
            assert socket.receive_text() == "hello"
        return True
    assert answer.status_code == 503
    assert "a page" not in answer.text
    assert "python -m db user add NAME --admin" in answer.text
    with pytest.raises(WebSocketDisconnect), browser.websocket_connect(stream_url):
        pass
    return False


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost:8501", "[::1]:8501", "LOCALHOST"])
def test_a_browser_on_this_machine_needs_no_sign_in(connect: Connect, host: str) -> None:
    assert opens(connect(host=host))


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("192.168.0.9", {}),
        ("::ffff:192.168.0.9", {}),
        ("", {}),
        ("127.0.0.1", {"host": "192.168.0.7:8501"}),
        ("127.0.0.1", {"host": "attacker.example"}),
        ("127.0.0.1", {"host": "127.0.0.1.attacker.example"}),
        ("127.0.0.1", {"host": "[::1"}),
        ("127.0.0.1", {"x_forwarded_for": "203.0.113.9"}),
        ("127.0.0.1", {"x_forwarded_host": "everyturn.example"}),
        ("127.0.0.1", {"forwarded": "for=203.0.113.9"}),
        ("127.0.0.1", {"via": "1.1 proxy"}),
    ],
)
def test_what_may_come_from_elsewhere_is_served_nothing_without_sign_in(
    connect: Connect, client: str, headers: dict[str, str]
) -> None:
    assert not opens(connect(client=client, **headers))


@pytest.mark.parametrize("address", [None, "0.0.0.0", "::", "10.0.0.1"])
def test_a_server_that_listens_beyond_this_machine_serves_nothing_without_sign_in(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    options = {"server.address": address}
    monkeypatch.setattr(sign_in_ways.st, "get_option", options.get)
    browser = connect()
    assert not opens(browser)
    assert browser.get("/_stcore/health").text == "a page"  # for the container's own check


def test_with_sign_in_connections_come_from_anywhere(connect: Connect, database: Database) -> None:
    let_in(database)
    assert opens(connect(client="192.168.0.9", host="everyturn.example", via="1.1 proxy"))


def test_uploads_wait_for_a_session_that_has_come_in(connect: Connect, database: Database) -> None:
    let_in(database)
    browser = connect(client="192.168.0.9")
    assert browser.put("/_stcore/upload_file/session-1/file-1").status_code == 403
    browsers.remember("session-1")
    assert browser.put("/_stcore/upload_file/session-1/file-1").status_code == 200
    assert browser.put("/_stcore/upload_file/session-2/file-1").status_code == 403
    browsers.forget("session-1")
    assert browser.put("/_stcore/upload_file/session-1/file-1").status_code == 403


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/agent/interact"])
def test_what_is_for_the_machine_stays_there(
    connect: Connect, database: Database, path: str
) -> None:
    let_in(database)
    assert connect(client="192.168.0.9").get(path).status_code == 403
    assert connect().get(path).status_code == 200


def send(browser: TestClient, *, origin: str = HERE, **fields: str) -> tuple[int, str, str]:
    """Send the form; return status, where it leads, and the cookie."""
    answer = browser.post(
        "/sign-in", content=urlencode({"name": "ann", "password": PASSWORD, **fields}),
        headers={"origin": origin},
    )  # fmt: skip
    return (
        answer.status_code,
        answer.headers.get("location", ""),
        answer.headers.get("set-cookie", ""),
    )


def test_a_right_password_gets_a_cookie_that_scripts_cannot_read(
    connect: Connect, database: Database
) -> None:
    let_in(database)
    status, location, cookie = send(connect(), back="/label?conversation=3&sign_in=wrong")
    assert (status, location) == (303, "/label?conversation=3")
    parts = {part.strip().split("=")[0].lower() for part in cookie.split(";")}
    assert {browsers.COOKIE, "httponly", "max-age", "path", "samesite"} <= parts
    assert "secure" not in parts
    token = cookie.split(";")[0].partition("=")[2]
    user = queries.session_user(database, token)
    assert user is not None
    assert user.name == "ann"


def test_over_https_the_cookie_stays_on_https(connect: Connect, database: Database) -> None:
    let_in(database)
    browser = connect("https://everyturn.example", client="192.168.0.9")
    assert "secure" in send(browser, origin="https://everyturn.example")[2].lower()


def test_a_session_lasts_as_long_as_the_settings_say(connect: Connect, database: Database) -> None:
    let_in(database)
    commands.change_project_settings(database, {"session_hours": 2})
    assert "Max-Age=7200;" in send(connect())[2]


def test_wrong_name_and_wrong_password_are_answered_alike_and_logged(
    connect: Connect, database: Database
) -> None:
    let_in(database)
    wrong_name = send(connect(), name="nobody")
    assert send(connect(), password="wrong password") == wrong_name == (303, "/?sign_in=wrong", "")
    assert [refusal.name for refusal in queries.refusals(database)] == ["ann", "nobody"]


def test_too_many_failures_are_told_to_wait(connect: Connect, database: Database) -> None:
    let_in(database)
    for _ in range(MAX_OF_BOTH):
        send(connect(), password="wrong password")
    assert send(connect(), back="/runs") == (303, "/runs?sign_in=wait", "")


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", "", HERE + "0"])
def test_a_form_of_another_site_is_refused(
    connect: Connect, database: Database, origin: str
) -> None:
    let_in(database)
    assert send(connect(), origin=origin) == (403, "", "")
    assert connect().post("/sign-in", content="name=ann").status_code == 403


@pytest.mark.parametrize(
    "back",
    [
        "https://attacker.example",
        "//attacker.example",
        "/\\attacker.example",
        "javascript:alert(1)",
        "/a\r\nSet-Cookie: x=y",
        "/%0d%0a\n",
        "",
        "label",
    ],
)
def test_signing_in_leads_to_no_other_site(connect: Connect, database: Database, back: str) -> None:
    let_in(database)
    status, location, cookie = send(connect(), back=back)
    assert (status, location) == (303, "/")
    assert browsers.COOKIE in cookie


def test_a_form_that_is_no_form_is_answered_in_words(connect: Connect, database: Database) -> None:
    let_in(database)
    browser = connect(origin=HERE)
    assert browser.post("/sign-in", content=b"x" * 9000).status_code == 413
    for content in (b"", b"\xff\xfe", b"name=%ff%00&password=%00", b"&" * 100):
        assert browser.post("/sign-in", content=content).status_code == 303


def test_under_a_base_path_cookie_and_pages_stay_there(
    connect: Connect, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in(database)
    options = {"server.address": "127.0.0.1", "server.baseUrlPath": "/every/turn/"}
    monkeypatch.setattr(gate.st, "get_option", options.get)
    _, location, cookie = send(connect())
    assert location == "/every/turn/"
    assert "Path=/every/turn/;" in cookie


def test_a_damaged_password_list_is_told_to_whoever_connects(
    connect: Connect, database: Database
) -> None:
    database.settings.passwords_file.write_text("{")
    answer = connect().get("/")
    assert answer.status_code == 503
    assert "password list" in answer.text
