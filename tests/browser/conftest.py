"""The app as a real server and a real Chromium in front of it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from db.settings import Settings
from tests.forking import Forks

ROOT = Path(__file__).parents[2]
CHROMIUM_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class AppServer:
    """`streamlit run app/main.py` on a free port of 127.0.0.1, started and stopped by the test.

    With `forks`, its runs are forks that take their time (`tests.browser.forking_server`).
    """

    def __init__(self, settings: Settings, forks: Forks | None = None) -> None:
        self._settings = settings
        self._module = (
            ["tests.browser.forking_server", str(forks.socket)] if forks else ["streamlit"]
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._settings.home.mkdir(parents=True, exist_ok=True)
        with (self._settings.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", *self._module, "run", "app/main.py"),
                    *("--server.port", str(self._port), "--server.address", "127.0.0.1"),
                ],
                cwd=ROOT,
                env={**os.environ, "EVERYTURN_HOME": str(self._settings.home)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2).close()
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.2)
            else:
                return
        raise AssertionError((self._settings.home / "server.log").read_text())

    def freeze(self) -> None:
        """Keep its connections open, and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on where `freeze` stopped it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the web process the hard way, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def app_server(settings: Settings) -> Iterator[AppServer]:
    server = AppServer(settings)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")  # its event loop must not outlive the browser tests
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "The browser tests need Chromium: apt-get install -y chromium"
    expect.set_options(timeout=90_000)  # other tests keep the cores busy
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(90_000)
    yield page
    context.close()
