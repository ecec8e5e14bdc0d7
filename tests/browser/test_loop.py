"""The whole loop in a real browser, on a tiny model: talk, send, score, train, talk to the result."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from db import queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.records import ConversationFilter, Run
from db.settings import Settings
from tests.browser.conftest import AppServer
from tests.conftest import EMBEDDED
from trainer.config import Device, TrainConfig
from trainer.runs.folder import RunFolder
from trainer.runs.launch import start_run
from trainer.runs.reconcile import reconcile
from trainer.serving import worker

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(280)]

WAIT_MS = 90_000

REPLIES = '[class*="st-key-chat_reply_"]'


@pytest.fixture
def model(settings: Settings, tiny_llama: Path) -> Iterator[str]:
    """The default model, as small as a test's; the chat's server loads it while the app starts."""
    settings.models_dir.mkdir(parents=True)
    (settings.models_dir / EMBEDDED).symlink_to(tiny_llama)
    worker.start(settings, EMBEDDED)
    yield EMBEDDED
    worker.make_room(settings, worker.chat_device())


def test_talk_send_score_train_and_talk_to_the_result_beside_the_base(
    model: str, app_server: AppServer, page: Page, settings: Settings
) -> None:
    page.set_default_timeout(WAIT_MS)
    database = open_database(settings)
    conversation_id = _talk(page, app_server, database)
    _score(page, app_server, database, conversation_id)
    run = _train(database, settings, conversation_id)
    _talk_to_both(page, app_server, run)


def _talk(page: Page, server: AppServer, database: Database) -> int:
    """Ask two questions, reload in between, and send what was said to be labelled."""
    page.goto(f"{server.url}/chat")
    _set_length(page, 12)
    for number, question in enumerate(("What is the capital of France?", "And who lives there?")):
        _ask(page, question)
        expect(page.locator(REPLIES)).to_have_count(number + 1)
        page.reload()
        expect(page.get_by_text(question)).to_be_visible()
    page.get_by_role("button", name="Send to labelling").click()
    link = page.get_by_role("link", name="Score conversation")
    expect(link).to_be_visible()
    user = queries.local_user(database)
    (row,) = queries.conversation_rows(database, ConversationFilter(), user_id=user.id)
    for turn in queries.conversation(database, row.id).assistant_messages:
        assert turn.token_ids and turn.logprobs and turn.model == EMBEDDED
    link.click()
    return row.id


def _score(page: Page, server: AppServer, database: Database, conversation_id: int) -> None:
    """Score both turns with the keyboard, on the page that the link led to."""
    page.wait_for_url(f"{server.url}/label?conversation={conversation_id}*")
    expect(page.get_by_text("Keys are awake")).to_be_visible()
    page.keyboard.press("9")
    page.keyboard.press("1")
    expect(page.get_by_text("saved")).to_have_count(2)
    turns = queries.conversation(database, conversation_id).assistant_messages
    assert [turn.scores[0].value for turn in turns] == [0.9, 0.1]


def _train(database: Database, settings: Settings, conversation_id: int) -> Run:
    """Train on it while the chat holds the device: the run gets it, and starts from ratio 1."""
    config = TrainConfig(
        base_model=EMBEDDED,
        epochs=3,
        learning_rate=0.01,
        max_kl=0,
        sample_prompts=0,
        lora_rank=4,
        device=Device.CPU,
    )
    run = start_run(
        database,
        name="Loop",
        conversation_ids=[conversation_id],
        config=config,
        start_token="loop",
    )
    deadline = time.monotonic() + WAIT_MS / 1000
    while not (run := queries.run(database, run.id)).status.has_ended:
        assert time.monotonic() < deadline, run.message
        reconcile(database)
        time.sleep(0.1)
    folder = RunFolder(settings.run_dir(run.id))
    assert run.status is RunStatus.FINISHED, folder.log_tail()
    assert worker.look(settings).stage is worker.Stage.OFF
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    first = [row for row in rows if row["step"] == rows[0]["step"]]
    assert len(first) == 2
    for row in first:  # the stored logprobs are the starting policy's own
        assert row["ratio_mean"] == pytest.approx(1.0, abs=1e-4)
    assert abs(rows[-1]["ratio_mean"] - 1.0) > 1e-3  # and training moves away from it
    return run


def _talk_to_both(page: Page, server: AppServer, run: Run) -> None:
    """Go from the run to its adapter, ask it beside the base, see that they differ."""
    page.goto(f"{server.url}/run?run={run.id}")
    page.get_by_role("link", name="Chat with it").click()
    page.wait_for_url(f"{server.url}/chat?run={run.id}")
    _set_length(page, 12)
    _ask(page, "What is the capital of France?")
    replies = page.locator(REPLIES)
    expect(replies).to_have_count(2)
    expect(replies.nth(0)).to_contain_text("Base model")
    expect(replies.nth(1)).to_contain_text(f"Run {run.id}: Loop")
    said = [replies.nth(place).locator(".prose").inner_text() for place in range(2)]
    assert said[0] != said[1]


def _ask(page: Page, question: str) -> None:
    field = page.get_by_test_id("stChatInputTextArea")
    expect(field).to_be_enabled()
    field.fill(question)
    field.press("Enter")
    expect(page.get_by_role("button", name="Send to labelling")).to_be_visible()


def _set_length(page: Page, tokens: int) -> None:
    """Let replies be short; the choice is stored, and the chat has its address now."""
    page.get_by_role("button", name="Settings").click()
    field = page.get_by_role("spinbutton", name="Longest reply (tokens)")
    field.fill(str(tokens))
    field.press("Enter")
    page.wait_for_url("**chat=**")
    page.keyboard.press("Escape")
