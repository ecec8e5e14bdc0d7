"""A messy file through the import page: read the report, correct the mapping, import, undo, again."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from db import queries
from db.engine import Database, open_database
from db.enums import ImportState
from db.records import Conversation, ConversationFilter
from db.settings import Settings
from tests.browser.conftest import AppServer

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_MS = 30_000

ROWS = [
    '{"prompt": "Where is my parcel?", "response": "Your order number, please?", "helpfulness": 8}',
    '{"prompt": "Hello", "response": "Hi!", "helpfulness": 0}',
    '{"prompt": "Hello again", "helpfulness": 2}',
    '{"prompt": "Where is my parcel?", "response": "Your order number, please?", "helpfulness": 8}',
    '{"prompt": "Caf\u00e9?", "response": "No score here.", "helpfulness": null}',
    '{"prompt": "cut off", "respo',
]


def test_a_messy_file_comes_in_right_and_goes_again(
    app_server: AppServer, page: Page, settings: Settings, tmp_path: Path
) -> None:
    messy = tmp_path / "messy.jsonl"
    messy.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(ROWS).encode())
    database = open_database(settings)

    _drop(page, app_server, messy)
    _expect_figures(page, conversations=3, scores=1)
    expect(page.get_by_text("2 values off this scale")).to_be_visible(timeout=WAIT_MS)
    report = queries.import_(database, 1).report
    assert report is not None
    assert [(issue.row, issue.field) for issue in report.skipped] == [
        (3, "response"),
        (6, "line 6"),
    ]

    _correct_the_scale(page)
    _expect_figures(page, conversations=3, scores=2)
    page.get_by_role("button", name="Import 3 conversations").click()
    expect(page.get_by_text("Imported 3 conversations with 2 scores")).to_be_visible(
        timeout=WAIT_MS
    )
    before = _said(database)
    assert before == {
        "Your order number, please?": [0.8],
        "Hi!": [0.0],
        "No score here.": [],
    }

    page.get_by_role("button", name="Undo this import").click()
    page.get_by_role("button", name="Undo the import").click()
    expect(page.get_by_text("nothing of it is left")).to_be_visible(timeout=WAIT_MS)
    assert _said(database) == {}

    _drop(page, app_server, messy)
    _expect_figures(page, conversations=3, scores=1)
    page.get_by_role("button", name="Import 3 conversations").click()
    expect(page.get_by_text("Imported 3 conversations with 1 score")).to_be_visible(timeout=WAIT_MS)
    assert _said(database) == {**before, "Your order number, please?": []}
    states = [job.state for job in queries.imports(database)]
    assert states == [ImportState.DONE, ImportState.UNDONE]


def _drop(page: Page, server: AppServer, file: Path) -> None:
    page.goto(f"{server.url}/import")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("button", name="Discard")).to_be_visible(timeout=WAIT_MS)


def _correct_the_scale(page: Page) -> None:
    page.get_by_text("Correct the scales").click()
    field = page.get_by_label("helpfulness: best value")
    field.fill("10")
    field.press("Tab")
    page.get_by_role("button", name="Check with these scales").click()
    expect(page.get_by_text("0 to 10 becomes 0 to 1").first).to_be_visible(timeout=WAIT_MS)


def _expect_figures(page: Page, **figures: int) -> None:
    labels = {"conversations": "Conversations", "scores": "Scores"}
    for name, value in figures.items():
        metric = page.get_by_test_id("stMetric").filter(has_text=labels[name]).first
        expect(metric.get_by_test_id("stMetricValue")).to_have_text(str(value), timeout=WAIT_MS)


def _said(database: Database) -> dict[str, list[float]]:
    """Return what each reply says and how it is scored."""
    ids = queries.conversation_ids(database, ConversationFilter(), user_id=1)
    found: list[Conversation] = queries.conversations(database, ids)
    turns = [turn for conversation in found for turn in conversation.assistant_messages]
    return {turn.content: [score.value for score in turn.scores] for turn in turns}
