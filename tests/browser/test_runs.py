"""A real run in a real browser: zoom survives new points, two tabs see one truth, reloads lose nothing."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from db import commands, queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.settings import Settings
from tests.browser.conftest import AppServer
from tests.forking import Forks
from tests.runs import scored
from trainer.config import TrainConfig
from trainer.runs import launch

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_MS = 60_000

LAST_STEP = """() => Math.max(0, ...[...document.querySelectorAll('.st-key-chart_kl .chart')]
    .map(chart => chart.calcdata?.[0]?.at(-1)?.x ?? 0))"""
"""The last step that the chart of KL shows; of many steps it does not show each."""

REACH = """() =>
    document.querySelector('.st-key-chart_ratio .chart').calcdata[0].at(-1).x"""
"""How far along the steps the lines of the chart of ratios reach: it grows with each redraw."""

VIEW = """() => { const chart = document.querySelector('.st-key-chart_ratio .chart');
    return { range: chart.layout.xaxis.range,
             hidden: chart.data.filter(t => t.visible === 'legendonly').map(t => t.name) }; }"""
"""What the reader has chosen to see of the chart of ratios."""


@pytest.fixture
def app_server(settings: Settings, forks: Forks) -> Iterator[AppServer]:
    server = AppServer(settings, forks)
    server.start()
    yield server
    server.kill()


def test_a_run_is_watched_stopped_and_resumed_in_two_tabs_through_reloads(
    app_server: AppServer,
    chromium: Browser,
    settings: Settings,
    tiny_llama: Path,
    forks: Forks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        launch, "start_process", partial(forks.start_run, hook=("tests.faults", "slow"))
    )
    database = open_database(settings)
    run_id = _start(database, tiny_llama)
    address = f"{app_server.url}/run?run={run_id}"
    context = chromium.new_context(viewport={"width": 1280, "height": 1400}, accept_downloads=True)
    first, second = context.new_page(), context.new_page()
    for tab in (first, second):
        tab.set_default_timeout(WAIT_MS)
        tab.goto(address)
        tab.wait_for_function(f"({LAST_STEP})() > 3", timeout=WAIT_MS)

    _a_view_stays_while_points_arrive(first)
    for kind in ("PNG", "SVG"):
        _save(first, kind)

    # One tab stops the run; the other one sees it without being touched, and so does its title.
    first.goto(f"{app_server.url}/runs")
    expect(first.get_by_text("running").first).to_be_visible()
    second.get_by_role("button", name="Stop").click()
    expect(first).to_have_title(re.compile("^■ Watched stopped"))
    expect(first.get_by_role("button", name="Put away")).to_be_visible()
    expect(second.get_by_text("Stopped after")).to_be_visible()
    assert queries.run(database, run_id).status is RunStatus.STOPPED

    # A reload and a new browser show the same; of two tabs that resume, one does it.
    second.reload()
    expect(second.get_by_text("Stopped after")).to_be_visible()
    first.close()
    elsewhere = chromium.new_context(viewport={"width": 1280, "height": 1400})
    third = elsewhere.new_page()
    third.set_default_timeout(WAIT_MS)
    third.goto(address)
    expect(third.get_by_text("Stopped after")).to_be_visible()
    third.wait_for_function(f"({LAST_STEP})() > 3")
    seen = third.evaluate(LAST_STEP)
    for tab in (second, third):
        tab.get_by_role("button", name="Resume").click(no_wait_after=True)
    for tab in (second, third):
        expect(tab.get_by_role("button", name="Stop")).to_be_visible()
        tab.wait_for_function(f"({LAST_STEP})() > {seen}", timeout=WAIT_MS)
    assert queries.run(database, run_id).attempt == 2
    for each in (context, elsewhere):
        each.close()


def _start(database: Database, model: Path) -> int:
    """Start a run of thousands of slow steps on a tiny model: it ends when it is told to."""
    turns = [("Hi", "Hello!", 0.9), ("And?", "No.", 0.1), ("Please", "Gladly.", 1.0)]
    conversations = [scored(*turns[: 1 + place % 3], system=f"{place}") for place in range(60)]
    ids, _ = commands.add_conversations(database, conversations)
    config = TrainConfig(
        base_model=str(model),
        epochs=100,
        batch_conversations=1,
        learning_rate=1e-5,
        max_kl=0,
        sample_prompts=0,
        lora_rank=2,
    )
    run = launch.start_run(
        database, name="Watched", conversation_ids=ids, config=config, start_token="watched"
    )
    return run.id


def _a_view_stays_while_points_arrive(page: Page) -> None:
    """Zoom in, hide a turn, and wait for new points: both stay."""
    chart = page.locator(".st-key-chart_ratio .chart")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").bounding_box()
    assert box is not None
    left, top = box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(left + box["width"] * 0.5, top + box["height"] * 0.5, steps=4)
    before = page.evaluate(LAST_STEP)
    page.wait_for_function(f"({LAST_STEP})() > {before}")  # others go on while this one is held
    page.mouse.up()
    chart.locator(".legendtoggle").nth(1).click()
    page.wait_for_function(f"({VIEW})().hidden.length === 1")
    chosen, before = page.evaluate(VIEW), page.evaluate(REACH)
    assert chosen["hidden"] == ["2"]
    page.wait_for_function(f"({REACH})() > {before}")
    assert page.evaluate(VIEW) == chosen


def _save(page: Page, kind: str) -> None:
    chart = page.locator(".st-key-chart_ratio .chart")
    chart.hover()
    with page.expect_download() as download:
        chart.locator(f'.modebar-btn[data-title="Save as {kind}"]').click()
    content = download.value.path().read_bytes()
    assert download.value.suggested_filename == f"chart_ratio.{kind.lower()}"
    assert content.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
