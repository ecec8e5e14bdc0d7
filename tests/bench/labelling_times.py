"""Timing the label page in Chromium, on a small and a large database by turns; no torch here."""

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from db import commands
from db.engine import open_database
from db.enums import Role
from db.records import Conversation, Message, Score
from db.settings import Settings
from tests.bench.chromium import WAIT_S, chromium, seen_ms, settle, watch
from tests.bench.labelling import FEW, MANY, TURNS, LabelTimes
from tests.browser.conftest import AppServer

ROUNDS = 6
MOVES = 3
"""Conversations that are passed over in each round before one is scored."""

_AT_ONCE = 500


@dataclass(slots=True)
class Desk:
    """A rater's browser in front of one of the two servers, and what was measured there, in ms."""

    page: Page
    url: str
    log: sqlite3.Connection
    open_ms: list[float] = field(default_factory=list)
    next_ms: list[float] = field(default_factory=list)
    saved_ms: list[float] = field(default_factory=list)
    stored_ms: list[float] = field(default_factory=list)

    def work(self, round: int) -> None:
        """Open the page, go some conversations on and score the turns of the last."""
        self.page.goto(self.url)
        link = self.page.get_by_role("link", name="Label", exact=True)
        expect(link).to_be_visible(timeout=WAIT_S * 1000)
        settle(self.page)
        watch(self.page, "h4", "talk")
        link.click()
        self.open_ms.append(seen_ms(self.page))
        expect(self.page.get_by_text("Keys are awake")).to_be_visible(timeout=WAIT_S * 1000)
        settle(self.page)
        for _ in range(MOVES):
            at = int(self.page.locator("h4").inner_text().split()[1])
            watch(self.page, "h4", title(at + 1))
            self.page.keyboard.press("ArrowRight")
            self.next_ms.append(seen_ms(self.page))
            settle(self.page)
        for turn in range(TURNS):
            watch(self.page, f".st-key-turn-{turn}", "saved")
            self.stored_ms.append(self.stored(str(1 + (round + turn) % 9)))
            self.saved_ms.append(seen_ms(self.page))
            settle(self.page)

    def stored(self, key: str) -> float:
        """Press a key; return the milliseconds until the log of scores has grown."""
        before = self.changes()
        began_s = time.perf_counter()
        self.page.keyboard.press(key)
        while self.changes() == before:
            if time.perf_counter() - began_s > WAIT_S:
                raise TimeoutError(f"the key {key} was not stored")
            time.sleep(0.002)
        return (time.perf_counter() - began_s) * 1000

    def changes(self) -> int:
        """Return the number of the log's last entry."""
        (last,) = self.log.execute("SELECT max(id) FROM events").fetchone()
        return last

    def times(self) -> LabelTimes:
        """Return the medians; the first round, in which everything is loaded, does not count."""
        return LabelTimes(
            open_ms=statistics.median(self.open_ms[1:]),
            next_ms=statistics.median(self.next_ms[MOVES:]),
            saved_ms=statistics.median(self.saved_ms[TURNS:]),
            stored_ms=statistics.median(self.stored_ms[TURNS:]),
            keys=len(self.stored_ms) - TURNS,
        )


def labelling_times() -> dict[str, Any]:
    """Let two servers be asked by turns."""
    with chromium() as browser, ExitStack() as stack:
        desks = [stack.enter_context(_desk(browser, size)) for size in (FEW, MANY)]
        for round in range(ROUNDS + 1):
            for desk in desks:
                desk.work(round)
        few, many = (desk.times() for desk in desks)
    return {"few": asdict(few), "many": asdict(many)}


@contextmanager
def _desk(browser: Browser, size: int) -> Iterator[Desk]:
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), database_url=f"sqlite:///{home}/everyturn.db")
        fill(settings, size)
        server = AppServer(settings)
        server.start()
        log = sqlite3.connect(Path(home) / "everyturn.db")
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            yield Desk(page, server.url, log)
            page.close()
        finally:
            log.close()
            server.kill()


def fill(settings: Settings, size: int) -> None:
    """Make a project of so many conversations, the later half scored by three people."""
    database = open_database(settings)
    for start in range(0, size, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, size))
        commands.add_conversations(database, [_talk(n, is_scored=n >= size / 2) for n in numbers])
    database.close()


def title(number: int) -> str:
    """Return a conversation's title, of the same length for all."""
    return f"talk {number:05d}"


def _talk(number: int, *, is_scored: bool) -> Conversation:
    messages: list[Message] = []
    for turn in range(TURNS):
        given = ("local", "anna", "ben") if is_scored else ()
        scores = tuple(Score(rater=rater, value=(number + turn) % 11 / 10) for rater in given)
        said = f"{number}.{turn} " + "the parcel went to your neighbour, who signed at noon " * 3
        messages.append(Message(role=Role.USER, content=f"{said}?"))
        messages.append(Message(role=Role.ASSISTANT, content=f"{said}.", scores=scores))
    return Conversation(title=title(number), messages=tuple(messages), tags=(f"week {number % 9}",))
