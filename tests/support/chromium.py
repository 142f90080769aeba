"""A plugin of pytest for the tests that need a browser: Debian's Chromium, one a worker, driven by Playwright.

Playwright's own browsers are never downloaded. The headless shell has the same engine and draws no window: a page takes
it a third of the processor time (0.2 s instead of 0.65 s, the first page of a context 0.6 s instead of 2.3 s).

Playwright's blocking API runs an event loop of asyncio in a greenlet of the thread, and leaves it marked as the running
one between two calls. Other tests of this worker start loops of their own, so the mark is taken away while no test
holds the browser (`awake`).
"""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from support.needs import lacks

PROGRAMS = ("chromium-headless-shell", "chromium")
"""The first that is here is used."""
EXECUTABLE = next(filter(None, map(shutil.which, PROGRAMS)), None)
# Containers lack the rights that Chromium's sandbox needs; all it opens is our own server. Glyphs are drawn alike
# everywhere without hinting.
ARGUMENTS = ["--no-sandbox", "--font-render-hinting=none"]


class Chromium:
    """The browser of a worker."""

    def __init__(self, playwright: Playwright) -> None:
        self.browser: Browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=ARGUMENTS)
        self._loop = asyncio.get_running_loop()
        self._sleep()

    def _sleep(self) -> None:
        asyncio._set_running_loop(None)

    @contextmanager
    def awake(self) -> Iterator[Browser]:
        """Hold the browser: nothing else in this thread may use asyncio meanwhile."""
        asyncio._set_running_loop(self._loop)
        try:
            yield self.browser
        finally:
            self._sleep()

    @classmethod
    @contextmanager
    def started(cls) -> Iterator["Chromium"]:
        """A browser that ends with the block."""
        with sync_playwright() as playwright:
            chromium = cls(playwright)
            try:
                yield chromium
            finally:
                with chromium.awake():
                    chromium.browser.close()
                asyncio._set_running_loop(chromium._loop)  # Playwright's own end takes it away


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """This worker's browser."""
    if EXECUTABLE is None:
        shell = PROGRAMS[0]
        lacks("the admin UI", f"{shell} (on Debian: apt install {shell})")
    with Chromium.started() as started:
        yield started
