"""A webhook hears that a run has ended, and can do no run any harm."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from db import commands, queries
from db.engine import Database
from db.enums import ErrorKind, RunStatus
from db.records import Run
from tests.db.building import queued_run
from trainer.runs import notice
from trainer.runs.notice import NoticeError, post, tell


@dataclass
class Hook:
    """A server that keeps what it is sent and answers as it is told."""

    status: int = 204
    bodies: list[dict[str, object]] = field(default_factory=list)
    hang: threading.Event | None = None
    drips: bool = False
    url: str = ""


@pytest.fixture
def hook() -> Iterator[Hook]:
    state = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            state.bodies.append(json.loads(self.rfile.read(length)))
            while state.hang is not None and not state.hang.wait(0.05 if state.drips else 30):
                self.wfile.write(b"H")
            self.send_response(state.status)
            if state.status == 302:
                self.send_header("Location", f"{state.url}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state
    if state.hang is not None:
        state.hang.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def failed(database: Database) -> Run:
    """A run that has failed."""
    run = queued_run(database, "night shift")
    commands.claim_next_run(database)
    commands.end_run(
        database, run.id, RunStatus.FAILED, error_kind=ErrorKind.DISK_FULL, error_text="full"
    )
    return queries.run(database, run.id)


def test_the_end_of_a_run_is_told_once(database: Database, failed: Run, hook: Hook) -> None:
    commands.change_project_settings(database, {"webhook_url": hook.url})
    for _ in range(2):
        tell(database, failed.id)
    (body,) = hook.bodies
    assert (body["run"], body["name"], body["status"]) == (failed.id, "night shift", "failed")
    assert body["error_kind"] == "disk_full"
    assert "night shift" in str(body["text"])


def test_nobody_is_told_where_no_hook_is_set_or_before_the_end(
    database: Database, failed: Run, hook: Hook
) -> None:
    tell(database, failed.id)
    commands.change_project_settings(database, {"webhook_url": hook.url})
    tell(database, queued_run(database, "waits").id)
    assert hook.bodies == []


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_hook_that_refuses_is_named_in_the_log_and_not_followed(
    database: Database,
    failed: Run,
    hook: Hook,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hook.status = status
    commands.change_project_settings(database, {"webhook_url": hook.url})
    tell(database, failed.id)
    assert f"it answers {status}" in capsys.readouterr().err
    assert len(hook.bodies) == 1
    assert queries.run(database, failed.id) == failed


def test_a_hook_that_hangs_is_given_up(
    failed: Run, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.hang = threading.Event()
    monkeypatch.setattr(notice, "TIMEOUT_S", 0.2)
    with pytest.raises(NoticeError, match="cannot be reached"):
        post(hook.url, failed)


def test_a_hook_that_answers_for_ever_bit_by_bit_holds_no_process(
    database: Database,
    failed: Run,
    hook: Hook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hook.hang, hook.drips = threading.Event(), True
    commands.change_project_settings(database, {"webhook_url": hook.url})
    monkeypatch.setattr(notice, "PATIENCE_S", 0.3)
    tell(database, failed.id)
    assert "more than 0.3 seconds" in capsys.readouterr().err
    assert len(hook.bodies) == 1


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://x",
        "javascript:alert(1)",
        "//host/path",
        "http://127.0.0.1:1/nobody",
        "http://[not-an-address/",
        "https://",
        "http://127.0.0.1:70000/",
    ],
)
def test_an_address_that_is_no_hook_is_refused_in_words(failed: Run, url: str) -> None:
    with pytest.raises(NoticeError, match="webhook"):
        post(url, failed)
