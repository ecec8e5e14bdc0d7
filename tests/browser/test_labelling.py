"""Labelling in a real browser, by keyboard: nothing is lost, doubled or shown as saved too early."""

import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from playwright.sync_api import Locator, Page, expect

from db import commands, queries
from db.engine import Database, open_database
from db.enums import Role
from db.records import Conversation, ConversationFilter, Message
from db.settings import read_settings
from tests.browser.conftest import AppServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

WAIT_MS = 30_000
T = TypeVar("T")
CONVERSATIONS, TURNS = 6, 5

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe> "
    "[click](javascript:document.title='owned') ![see](http://127.0.0.1:9/track.png) "
    "a\x00b \ud800 \u202e \U0001f469\u200d\U0001f680"
)


@pytest.fixture(scope="module")
def app_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """One server for all tests here: starting it takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERYTURN_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("DATABASE_URL", raising=False)
        server = AppServer(read_settings())
        server.start()
        yield server
        server.kill()


@pytest.fixture
def database(app_server: AppServer) -> Iterator[Database]:
    """The server's database, without the conversations of the test before."""
    opened = open_database(read_settings())
    yield opened
    user = queries.local_user(opened)
    ids = queries.conversation_ids(opened, ConversationFilter(), user_id=user.id)
    commands.delete_conversations(opened, ids)
    opened.close()


def talk(name: str, turns: int, *, says: str = "") -> Conversation:
    messages = [
        Message(role=role, content=f"{role} {name} {turn} {says}")
        for turn in range(turns)
        for role in (Role.USER, Role.ASSISTANT)
    ]
    return Conversation(title=name, messages=tuple(messages))


def add(database: Database, count: int, turns: int) -> list[int]:
    talks = [talk(f"talk {number}", turns) for number in range(count)]
    return commands.add_conversations(database, talks)[0]


def scores(database: Database, ids: list[int]) -> list[float | None]:
    return [
        turn.scores[0].value if turn.scores else None
        for conversation in queries.conversations(database, ids)
        for turn in conversation.assistant_messages
    ]


def until(page: Page, found: Callable[[], T], wanted: T) -> None:
    deadline = time.monotonic() + WAIT_MS / 1000
    while found() != wanted and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert found() == wanted


def open_label(page: Page, server: AppServer, conversation_id: int | None = None) -> None:
    named = "" if conversation_id is None else f"?conversation={conversation_id}"
    page.goto(f"{server.url}/label{named}")
    expect(page.get_by_text("Keys are awake")).to_be_visible(timeout=WAIT_MS)


def is_above_bar(page: Page, turn: Locator) -> bool:
    """Return whether a turn ends above the bar at the foot, which would cover its controls."""
    box, bar = (
        place.bounding_box() for place in (turn, page.get_by_test_id("stBottomBlockContainer"))
    )
    return box is not None and bar is not None and box["y"] + box["height"] <= bar["y"]


def press(page: Page, keys: str) -> None:
    """Press keys as fast as they come, without looking at the page in between."""
    for key in keys.split():
        page.keyboard.press(key)


def press_on_numpad(page: Page, digit: str) -> None:
    """Press a digit of the numpad while NumLock is on, which `keyboard.press` does not know."""
    session = page.context.new_cdp_session(page)
    key = {"key": digit, "code": f"Numpad{digit}", "text": digit, "isKeypad": True, "location": 3}
    for kind in ("keyDown", "keyUp"):
        session.send("Input.dispatchKeyEvent", {"type": kind, **key})


def test_thirty_turns_are_labelled_with_the_keyboard_alone(
    app_server: AppServer, page: Page, database: Database
) -> None:
    ids = add(database, CONVERSATIONS, TURNS)
    user = queries.local_user(database)
    open_label(page, app_server)

    press(page, "1 2 3 4 5 Control+Enter")
    for digit in "6789":
        press_on_numpad(page, digit)
    press(page, "a Control+Enter")
    press(page, "0 0 0 0 0")
    expected: list[float | None] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    until(page, lambda: scores(database, ids)[:15], [*expected, *[0.0] * 5])

    press(page, " ".join(["Control+z"] * 5))
    until(page, lambda: scores(database, ids)[10:15], [None] * 5)
    press(page, "Control+Shift+z")
    until(page, lambda: scores(database, ids)[10:15], [0.0, *[None] * 4])

    page.reload()
    expect(page.get_by_text("Keys are awake")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("heading", name="talk 2")).to_be_visible()  # where they left off
    press(page, "ArrowDown ArrowUp")
    press(page, "ArrowDown 9 8 7 6 Control+Enter")
    press(
        page, "1 1 1 1 1 Control+Enter 2 2 2 2 2 Control+Enter 3 + 3 3 3"
    )  # + changes the score just given
    expected += [0.0, 0.9, 0.8, 0.7, 0.6, *[0.1] * 5, *[0.2] * 5, 0.35, *[0.3] * 3]
    until(page, lambda: scores(database, ids)[:29], expected)

    # Text is text, not keys; a note may be written before its score.
    expect(page.get_by_text("not scored").first).to_be_visible(timeout=WAIT_MS)
    press(page, "n")
    page.keyboard.type("5 stars? no: 4s")
    expect(page.get_by_text("Keys are asleep")).to_be_visible()
    press(page, "Enter Escape")
    expect(page.get_by_text("Keys are awake")).to_be_visible()
    press(page, "4 + Control+Enter")
    until(page, lambda: scores(database, ids), [*expected, 0.45])

    expect(page.get_by_text("Nothing waits for you here")).to_have_count(0)
    expect(page.get_by_text("6 done").first).to_be_visible(timeout=WAIT_MS)
    last = queries.conversations(database, ids)[-1].assistant_messages[-1].scores[0]
    assert last.note == "5 stars? no: 4s"
    counts = queries.score_events(database, user_id=user.id, limit=1000)
    # 15 scores, 5 undos, 1 redo, 4 + 5 + 5 + 5 scores, two of them nudged, a note: each key once.
    assert len(counts) == 15 + 5 + 1 + 19 + 2 + 1


def test_the_marked_turn_is_in_view_and_fields_put_keys_to_sleep(
    app_server: AppServer, page: Page, database: Database
) -> None:
    (long,) = commands.add_conversations(database, [talk("long", 15, says="word " * 120)])[0]
    open_label(page, app_server, long)
    for turn, width in ((13, 1280), (1, 834)):
        page.set_viewport_size({"width": width, "height": 1112})
        page.goto(f"{app_server.url}/label?conversation={long}&turn={turn}")
        expect(page.get_by_text("Keys are awake")).to_be_visible(timeout=WAIT_MS)
        marked = page.locator(f".st-key-turn-{turn - 1}")
        expect(marked.get_by_role("textbox", name="Note")).to_be_in_viewport(timeout=WAIT_MS)
        page.keyboard.press("ArrowDown")
        below = page.locator(f".st-key-turn-{turn}")
        expect(below.get_by_role("textbox", name="Note")).to_be_in_viewport(timeout=WAIT_MS)
        until(page, lambda below=below: is_above_bar(page, below), True)
    page.get_by_role("spinbutton", name="Exact score").click()
    page.keyboard.type("0.7")
    page.keyboard.press("Escape")
    until(page, lambda: scores(database, [long]).count(0.7), 1)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog").get_by_text("Done, and on to the next")
    expect(keys).to_be_visible(timeout=WAIT_MS)
    page.keyboard.press("5")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0, timeout=WAIT_MS)
    press(page, "6")
    until(page, lambda: scores(database, [long]).count(0.6), 1)
    assert scores(database, [long]).count(0.5) == 0  # the dialog was in front of the turn
    expect(keys).to_have_count(0)


def test_a_window_that_is_looked_at_again_shows_what_another_one_did(
    app_server: AppServer, page: Page, database: Database
) -> None:
    (id,) = add(database, 1, 3)
    other = page.context.new_page()
    for window in (page, other):
        open_label(window, app_server, id)
    press(page, "7")
    expect(page.get_by_text("0.70 saved")).to_be_visible(timeout=WAIT_MS)
    press(other, "Control+z")
    expect(other.get_by_text("Undone: turn 1 is not scored.")).to_be_visible(timeout=WAIT_MS)
    page.evaluate("window.dispatchEvent(new Event('focus'))")  # as when its window is chosen
    expect(page.get_by_text("0.70 saved")).to_have_count(0, timeout=WAIT_MS)
    press(page, "3")
    until(page, lambda: scores(database, [id]), [None, 0.3, None])


def test_hostile_text_is_only_ever_text(
    app_server: AppServer, page: Page, database: Database
) -> None:
    (id,) = commands.add_conversations(database, [talk(HOSTILE, 2, says=HOSTILE)])[0]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    open_label(page, app_server, id)
    expect(page.get_by_text("<script>document.title='owned'</script>").first).to_be_visible()
    page.goto(f"{app_server.url}/conversations?conversation={id}")
    expect(page.get_by_text("<script>document.title='owned'</script>").first).to_be_visible()
    page.wait_for_timeout(500)
    assert "owned" not in page.title()
    assert page.locator("iframe, img[src=x], a[href^=javascript]").count() == 0
    elsewhere = [url.removeprefix("blob:") for url in asked]
    assert [url for url in elsewhere if not url.startswith(app_server.url)] == []


def test_a_key_that_fails_takes_those_behind_it_along_and_the_others_stay_alive(
    app_server: AppServer, page: Page, database: Database
) -> None:
    gone, silent, last = commands.add_conversations(
        database,
        [
            talk("gone", 8),
            Conversation(messages=(Message(role=Role.USER, content="nobody answers"),)),
            talk("last", 2),
        ],
    )[0]
    open_label(page, app_server, gone)
    commands.delete_conversations(database, [gone])
    press(page, "1 2 3 4 5")
    expect(page.get_by_text(f"There is no conversation {gone}").first).to_be_visible(
        timeout=WAIT_MS
    )
    expect(page.get_by_text("Keys are a").or_(page.get_by_text("left out"))).to_be_visible()

    press(page, "ArrowRight 6")
    until(page, lambda: scores(database, [last]), [0.6, None])

    # Where nothing can be scored, there is no note to write, and keys lead on.
    page.goto(f"{app_server.url}/label?conversation={silent}")
    expect(page.get_by_text("Keys are awake")).to_be_visible(timeout=WAIT_MS)
    press(page, "n 5 ArrowRight")
    until(page, lambda: f"conversation={last}" in page.url, True)
    press(page, "8")
    until(page, lambda: scores(database, [last]), [0.6, 0.8])


def test_each_digit_of_a_keyboard_that_writes_them_with_shift_gives_its_score(
    app_server: AppServer, page: Page, database: Database
) -> None:
    (id,) = add(database, 1, 10)
    open_label(page, app_server, id)
    session = page.context.new_cdp_session(page)
    for digit, sign in enumerate("à&é\"'(-è_ç"):
        key = {"key": sign, "code": f"Digit{digit}", "text": sign}
        for kind in ("keyDown", "keyUp"):
            session.send("Input.dispatchKeyEvent", {"type": kind, **key})
    until(page, lambda: scores(database, [id]), [digit / 10 for digit in range(10)])


def test_a_cut_connection_is_told_and_nothing_saved_is_missing(
    app_server: AppServer, page: Page, database: Database
) -> None:
    (id,) = add(database, 1, 8)
    open_label(page, app_server, id)

    # The browser loses its network for a moment: the key waits for it.
    page.context.set_offline(True)
    page.keyboard.press("1")
    page.context.set_offline(False)
    expect(page.get_by_text("0.10 saved")).to_be_visible(timeout=WAIT_MS)

    # It loses it for longer: keys do nothing, and that is told as long as it may go unseen.
    page.context.set_offline(True)
    expect(page.get_by_text("No connection to the server")).to_be_visible(timeout=WAIT_MS)
    press(page, "9 9")
    page.context.set_offline(False)
    expect(page.get_by_text("The 2 keys that were pressed without")).to_be_visible(timeout=WAIT_MS)

    # The server does not answer: the key waits, the page says so, and it counts once.
    app_server.freeze()
    page.keyboard.press("2")
    expect(page.get_by_text("Not stored yet: 1 key")).to_be_visible(timeout=WAIT_MS)
    assert page.get_by_text("0.20 saved").count() == 0
    app_server.thaw()
    expect(page.get_by_text("0.20 saved")).to_be_visible(timeout=WAIT_MS)
    assert scores(database, [id]) == [0.1, 0.2, *[None] * 6]

    # The server is killed the moment "saved" appears.
    page.keyboard.press("3")
    expect(page.get_by_text("0.30 saved")).to_be_visible(timeout=WAIT_MS)
    app_server.kill()
    assert scores(database, [id]) == [0.1, 0.2, 0.3, *[None] * 5]
    expect(page.get_by_text("No connection to the server")).to_be_visible(timeout=WAIT_MS)
    page.keyboard.press("9")
    app_server.start()
    # What the page had not heard of key 3 when the server was killed, it tells as not known.
    told = re.compile("Keys are awake|The server started anew|pressed without a connection")
    expect(page.get_by_text(told)).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("0.30 saved")).to_be_visible(timeout=WAIT_MS)
    page.keyboard.press("4")
    expect(page.get_by_text("0.40 saved")).to_be_visible(timeout=WAIT_MS)
    assert scores(database, [id]) == [0.1, 0.2, 0.3, 0.4, *[None] * 4]
