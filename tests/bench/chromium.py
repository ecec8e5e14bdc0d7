"""Chromium in front of a server that is measured: what a person waits for, in milliseconds."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS

WAIT_S = 30

_WATCH = """
([selector, wanted, waitMs]) => {
  const begun = performance.now();
  window.seen = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${selector} never said "${wanted}"`)), waitMs);
    const watch = new MutationObserver(() => {
      const found = [...document.querySelectorAll(selector)];
      if (!found.some((element) => element.textContent.includes(wanted))) return;
      watch.disconnect();
      resolve(performance.now() - begun);
    });
    watch.observe(document.body, { childList: true, subtree: true, characterData: true });
  });
}
"""
"""Notes when an element of the page comes to hold a text."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the time of the block."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "Pages are measured in Chromium: apt-get install -y chromium"
    with (
        sync_playwright() as playwright,
        closing(playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)) as browser,
    ):
        yield browser


def watch(page: Page, selector: str, wanted: str) -> None:
    """Begin to wait for a text."""
    page.evaluate(_WATCH, [selector, wanted, WAIT_S * 1000])


def seen_ms(page: Page) -> float:
    """Return the milliseconds from `watch` until it was there; it fails after `WAIT_S`."""
    return page.evaluate("() => window.seen")


def settle(page: Page) -> None:
    """Wait until the server has drawn the whole page, and a moment, as a person would."""
    drawn = '[data-testid="stApp"][data-test-script-state="notRunning"]'
    page.wait_for_selector(drawn, timeout=WAIT_S * 1000)
    page.wait_for_timeout(200)
