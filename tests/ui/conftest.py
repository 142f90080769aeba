"""A browser at the admin UI of a real server.

- `ui`: an empty server of this test's own, `page` and `phone`: somebody who is logged in there.
- `world`: one server a worker with the showcase, which tests only read; `world_page`: somebody who is logged in there.
- `open_page(server, ...)`: any other page.

What the guard of a page found wrong fails its test (support/browser.py).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Page

from forq_trio import ForqClient
from support.browser import PHONE, Guard, guarded_page, log_in
from support.chromium import Chromium
from support.real_server import SECRET, RealServer, real_server
from support.showcase import fill
from support.traffic import Traffic, live_producer

OVER_HTTP = {"FORQ_ENV": "local"}  # cookies that need no TLS

OpenPage = Callable[..., Page]


@pytest.fixture
def ui(tmp_path) -> Iterator[RealServer]:
    with real_server(tmp_path / "forq.db", **OVER_HTTP) as server:
        yield server


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("world") / "forq.db", **OVER_HTTP) as server:
        fill(server.url, SECRET)
        yield server


@pytest.fixture
def client(ui) -> Iterator[ForqClient]:
    """The API of `ui`."""
    with ForqClient(ui.url, SECRET) as client:
        yield client


@pytest.fixture
def guards() -> dict[Page, Guard]:
    """The guard of each page that was opened."""
    return {}


@pytest.fixture
def open_page(chromium: Chromium, guards) -> Iterator[OpenPage]:
    """open_page(server, key=SECRET, **options of the context): a page that is logged in; key=None: one that is not."""
    with chromium.awake() as browser, ExitStack() as opened:

        def open_page(server: RealServer, key: str | None = SECRET, **options: Any) -> Page:
            page, guard = opened.enter_context(guarded_page(browser, server.ui_url, **options))
            guards[page] = guard
            if key is not None:
                log_in(page, key)
            return page

        yield open_page


@pytest.fixture
def page(ui, open_page) -> Page:
    return open_page(ui)


@pytest.fixture
def phone(ui, open_page) -> Page:
    return open_page(ui, **PHONE)


@pytest.fixture
def world_page(open_page, world) -> Page:
    return open_page(world)


@pytest.fixture
def producer(ui) -> Iterator[Traffic]:
    """Somebody who sends five messages a second to the queue `live`."""
    with live_producer(ui.url, SECRET, "live") as traffic:
        yield traffic
