"""The whole path in a real browser, on the real embedded model: from an example set to an adapter."""

import re
import time
import zipfile
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from playwright.sync_api import Browser, Page, expect
from transformers import AutoModelForCausalLM, AutoTokenizer

from db import queries
from db.engine import Database, open_database
from db.enums import RunStatus
from db.examples import EXAMPLE_SETS
from db.records import ConversationFilter
from db.settings import Settings
from tests.bench.chromium import settle
from tests.browser.conftest import AppServer
from trainer.runs.folder import RunFolder
from trainer.runs.reconcile import reconcile

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(540)]

POINTS = """() => {
    const charts = [...document.querySelectorAll('.js-plotly-plot')];
    return charts.reduce((n, c) => n + (c.calcdata || []).reduce((m, t) => m + t.length, 0), 0);
}"""
"""How many points the page's charts show."""


def test_from_an_example_set_to_an_adapter_that_peft_loads(
    app_server: AppServer,
    chromium: Browser,
    page: Page,
    settings: Settings,
    smollm2: Path,
    tmp_path: Path,
) -> None:
    settings.models_dir.mkdir(parents=True, exist_ok=True)
    (settings.models_dir / smollm2.name).symlink_to(smollm2)
    database = open_database(settings)

    _load_the_dialogue_set(page, app_server)
    _score_a_conversation(page, app_server, database)
    run_id = _start_a_run(page, app_server)

    # Points arrive while nobody touches the page.
    page.evaluate("window.sameDocument = true")
    page.wait_for_function(f"({POINTS})() > 0", timeout=240_000)
    first = page.evaluate(POINTS)
    page.wait_for_function(f"({POINTS})() > {first}", timeout=240_000)
    assert page.evaluate("window.sameDocument") is True

    # The browser closes and the web process dies; the run does not notice.
    page.context.close()
    app_server.kill()
    app_server.start()
    page = chromium.new_context(accept_downloads=True).new_page()
    page.goto(f"{app_server.url}/runs")
    expect(page.get_by_text("first run").first).to_be_visible(timeout=60_000)

    run = _wait_until_ended(database, run_id)
    log = RunFolder(settings.run_dir(run_id)).log_tail()
    assert run is RunStatus.FINISHED, log
    assert queries.run(database, run_id).attempt == 1

    page.goto(f"{app_server.url}/run?run={run_id}&tab=Export")
    expect(page.get_by_text("finished").first).to_be_visible(timeout=60_000)
    settle(page)  # what a click asks for has to be drawn whole
    with page.expect_download() as download:
        page.get_by_role("button", name="Adapter (zip)").click()
    archive = tmp_path / "adapter.zip"
    download.value.save_as(archive)
    page.context.close()
    _load_with_peft(archive, smollm2, tmp_path / "adapter")


def _load_the_dialogue_set(page: Page, server: AppServer) -> None:
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Welcome to EveryTurn")).to_be_visible()
    for example in EXAMPLE_SETS:
        if example.name != "dialogue":
            page.get_by_text(example.title, exact=True).click()
            page.wait_for_timeout(200)
    page.get_by_role("button", name="Load the example sets").click()
    expect(page.get_by_text("Loaded 8 conversations.")).to_be_visible()


def _score_a_conversation(page: Page, server: AppServer, database: Database) -> None:
    """Score every turn of the set's unscored conversation with the keyboard."""
    user = queries.local_user(database)
    (row,) = queries.conversation_rows(database, ConversationFilter(scored="none"), user_id=user.id)
    page.goto(f"{server.url}/label?conversation={row.id}")
    expect(page.get_by_text("Keys are awake")).to_be_visible(timeout=15_000)
    for turn in range(row.turns):
        page.keyboard.press(str(9 - turn))
    expect(page.get_by_text("saved")).to_have_count(row.turns, timeout=15_000)
    scored = queries.conversation(database, row.id)
    values = [[score.value for score in message.scores] for message in scored.assistant_messages]
    assert values == [[(9 - turn) / 10] for turn in range(row.turns)]


def _start_a_run(page: Page, server: AppServer) -> int:
    page.goto(f"{server.url}/launch")
    page.get_by_label("Name of the run").fill("first run")
    page.get_by_label("Name of the run").press("Enter")
    _ask_for_little(page)
    button = page.get_by_role("button", name="Start the run")
    expect(button).to_be_enabled()
    page.wait_for_timeout(500)  # the name reaches the server before the click does
    button.dblclick()
    page.wait_for_url(re.compile(r"/run\?run=\d+"))
    expect(page.get_by_role("heading", name="first run")).to_be_visible()
    return int(re.findall(r"run=(\d+)", page.url)[0])


def _ask_for_little(page: Page) -> None:
    """Choose what a look at the product needs: four small steps, and a few words of one sample."""
    page.get_by_text("More settings").click()
    for name, value in (
        ("Epochs", 1),
        ("Conversations a step", 2),
        ("Sample prompts", 1),
        ("Sample length (tokens)", 8),
    ):
        field = page.get_by_role("spinbutton", name=name, exact=True)
        field.fill(str(value))
        field.press("Enter")
    changed = (
        "Changed from the standard method: Epochs 1, Conversations a step 2, Sample prompts 1, "
        "Sample length 8"
    )
    expect(page.get_by_text(changed)).to_be_visible()


def _wait_until_ended(database: Database, run_id: int) -> RunStatus:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        reconcile(database)
        run = queries.run(database, run_id)
        if run.status.has_ended:
            assert len(queries.runs(database)) == 1, "a double click made two runs"
            return run.status
        time.sleep(1)
    raise AssertionError(f"still {run.status}: {run.message}")


def _load_with_peft(archive: Path, base_folder: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    assert {"README.md", "everyturn_config.json", "chat_template.jinja"} <= {
        path.name for path in folder.iterdir()
    }
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hello!"}], add_generation_prompt=True, return_tensors="pt"
    )["input_ids"]
    base = AutoModelForCausalLM.from_pretrained(base_folder, dtype=torch.float32)
    with torch.no_grad():
        before = base(ids).logits
        after = PeftModel.from_pretrained(base, folder)(ids).logits
    assert after.isfinite().all()
    assert (after - before).abs().max() > 1e-3
