"""Start and Stop of a run as somebody waits for them: from the click until the page shows it.

The server, the run's process and the browser share the machine; no torch here.
"""

import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, expect

from db import commands, queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.records import Run
from db.settings import Settings
from tests.bench.chromium import WAIT_S, chromium, seen_ms, settle, watch
from tests.browser.conftest import AppServer
from tests.runs import scored
from trainer.catalog import model_folder
from trainer.config import EMBEDDED_MODEL
from trainer.runs.reconcile import reconcile

ROUNDS = 5
CONVERSATIONS = 10
PATIENCE_S = 180

BUTTON = ".st-key-stop_run"
"""On a run's page: "Stop" while it goes on, "Stopping…" once it is asked to stop."""


def run_pages(settings: Settings) -> dict[str, float]:
    """Return the medians, as `tests.bench.runs` names them; the first round does not count.

    Args:
        settings: Where the embedded model is; the runs go into a home of their own.
    """
    start_ms: list[float] = []
    stop_ms: list[float] = []
    with TemporaryDirectory() as home:
        own = Settings(home=Path(home), database_url=f"sqlite:///{home}/everyturn.db")
        database = open_database(own)
        own.models_dir.mkdir()
        folder = model_folder(settings, EMBEDDED_MODEL)
        (own.models_dir / folder.name).symlink_to(folder)
        commands.add_conversations(
            database,
            [
                scored(
                    (f"Question {number}, please", "Yes, gladly.", number / CONVERSATIONS),
                    ("And then?", "No.", -0.5),
                )
                for number in range(CONVERSATIONS)
            ],
        )
        server = AppServer(own)
        server.start()
        try:
            with chromium() as browser:
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.set_default_timeout(WAIT_S * 1000)
                for _ in range(ROUNDS + 1):
                    start_ms.append(_start(page, server.url))
                    (run, *_) = queries.runs(database)
                    _wait(database, run, RunStatus.RUNNING)
                    stop_ms.append(_stop(page))
                    _wait(database, run, RunStatus.STOPPED)
        finally:
            server.kill()
            database.close()
    return {
        "start_click_s": statistics.median(start_ms[1:]) / 1000,
        "stop_click_s": statistics.median(stop_ms[1:]) / 1000,
    }


def _start(page: Page, url: str) -> float:
    page.goto(f"{url}/launch")
    button = page.get_by_role("button", name="Start the run")
    expect(button).to_be_enabled(timeout=WAIT_S * 1000)
    settle(page)
    watch(page, BUTTON, "Stop")
    button.click()
    return seen_ms(page)


def _stop(page: Page) -> float:
    button = page.get_by_role("button", name="Stop", exact=True)
    expect(button).to_be_enabled(timeout=WAIT_S * 1000)
    page.wait_for_timeout(500)  # as a person would; a live page is never quite drawn
    watch(page, BUTTON, "Stopping")
    button.click()
    return seen_ms(page)


def _wait(database: Database, run: Run, status: RunStatus) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (now := queries.run(database, run.id)).status is not status:
        if now.status.has_ended or time.monotonic() > deadline:
            raise RuntimeError(f"run {run.id} is {now.status}: {now.error_text}")
        time.sleep(0.1)
        reconcile(database)
