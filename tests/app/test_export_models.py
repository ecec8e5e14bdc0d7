"""The run page's exports: made once, followed, cancelled; failures in words; offered when checked."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from app import routes
from db import commands
from db.engine import Database
from db.enums import RunStatus, UserRole
from tests.app.conftest import MARKUP, OpenPage
from tests.app.rows import make_run
from trainer.export import jobs
from trainer.export.jobs import Export, start_export
from trainer.export.usage import Form
from trainer.runs.folder import RunFolder, write_json, write_text
from trainer.runs.process import Mark, own_machine, start_time


@pytest.fixture
def wanted(database: Database, conversation_ids: list[int]) -> Export:
    """The adapter of a finished run, as the tab offers it first."""
    run = make_run(database, conversation_ids, RunStatus.FINISHED)
    folder = RunFolder(database.settings.run_dir(run.id))
    folder.adapter.mkdir()
    write_json(folder.adapter / "adapter_config.json", {})
    return Export(folder, Form.ADAPTER)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """What was started in the place of exports: processes that say one line and live on."""
    started: list[list[str]] = []
    living: list[subprocess.Popen[bytes]] = []

    def start(_settings: object, folder, kind: str, arguments: list[str], *, said: str = ""):
        started.append([kind, *arguments, said])
        living.append(subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]))
        pid = living[-1].pid
        mark = Mark(machine=own_machine(), pid=pid, started_at=start_time(pid) or 0.0)
        write_text(folder.with_name(f"{folder.name}.{kind}.log"), "1/2 Asking the trained model.\n")
        write_text(folder.with_name(f"{folder.name}.{kind}.process"), str(mark))

    monkeypatch.setattr(jobs, "_start", start)
    yield started
    for process in living:
        process.kill()
        process.wait()


def texts(elements: object) -> str:
    return "\n".join(str(element.value) for element in elements)  # type: ignore[attr-defined]


def keys(page: AppTest, kind: str) -> set[str | None]:
    return {element.key for element in page.get(kind)}


def open_tab(open_page: OpenPage, wanted: Export) -> AppTest:
    page = open_page(routes.RUN, run=wanted.run.path.name, tab="Export")
    assert not page.exception
    return page


def test_two_clicks_make_one_export_that_is_followed_and_can_be_cancelled(
    database: Database, open_page: OpenPage, wanted: Export, started: list[list[str]]
) -> None:
    page = open_tab(open_page, wanted)
    page.button(key="make_export").click().run()
    start_export(database.settings, wanted)  # the second click, from another tab
    assert not page.exception
    ((kind, *arguments, said),) = started
    assert (kind, said) == ("export", "")
    assert arguments[arguments.index("--to") + 1] == "adapter"
    assert arguments[arguments.index("--out") + 1] == str(wanted.folder)
    assert "Asking the trained model" in texts(page.info)
    page.button(key="cancel_export").click().run()
    assert jobs.export_job(wanted).state is jobs.JobState.NONE
    assert "make_export" in keys(page, "button")


def test_a_failed_export_says_why_in_words_and_offers_another_try(
    open_page: OpenPage, wanted: Export
) -> None:
    wanted.folder.parent.mkdir()
    gone = Mark(machine=own_machine(), pid=1, started_at=0.5)
    write_text(wanted.folder.with_name("adapter.export.process"), str(gone))
    log = wanted.folder.with_name("adapter.export.log")
    write_text(log, "error: the export cannot be written (no space is left on the disk)\n")
    page = open_tab(open_page, wanted)
    assert "It was not made." in texts(page.error)
    assert "no space is left on the disk" in texts(page.error)
    assert page.button(key="make_export").label == "Try again"
    assert "download_export" not in keys(page, "download_button")
    write_text(log, "1/2 Asking the trained model.\n")
    assert "killed" in texts(open_tab(open_page, wanted).error)


def test_a_checked_export_is_offered_with_commands_and_its_upload_takes_the_token_along(
    open_page: OpenPage, wanted: Export, started: list[list[str]]
) -> None:
    wanted.folder.mkdir(parents=True)
    write_text(wanted.folder / "README.md", "A card.")
    write_text(wanted.folder.with_name("adapter.export.log"), f"Compared. {MARKUP}\n")
    page = open_tab(open_page, wanted)
    assert "download_export" in keys(page, "download_button")
    commands_to_copy = texts(page.code)
    assert str(wanted.folder) in commands_to_copy
    assert "vllm serve" in commands_to_copy
    page.text_input(key="push_to").set_value("owner/name")
    page.text_input(key="push_token").set_value("hf_of_this_test")
    next(button for button in page.button if button.label == "Upload").click().run()
    assert not page.exception
    ((kind, *arguments, said),) = started
    assert (kind, said) == ("upload", "hf_of_this_test\n")
    assert arguments == ["push", str(wanted.folder), "owner/name"]
    assert "Uploading" in texts(page.info)
    assert "push_token" not in keys(page, "text_input")  # while it goes on nobody types another


def test_only_admins_see_what_can_be_taken_away(
    database: Database, open_page: OpenPage, wanted: Export
) -> None:
    commands.admit_person(database, "local", role=UserRole.ANNOTATOR, password=None)
    page = open_tab(open_page, wanted)
    assert "Only admins take files away" in texts(page.info)
    assert "make_export" not in keys(page, "button")
