"""A browser at the admin UI of a real server.

- `world`: one server a worker with the showcase, which tests only read; `world_page`: somebody who is logged in there.
- `ui`: one server a worker for the tests that change something, which is emptied before each of them; `client`: its
  API; `page` and `phone`: somebody who is logged in there.
- `own`: a server of this test's own, for what cannot be undone on one that others use.
- `open_page(server, ...)`: any other page.

What the guard of a page found wrong fails its test (support/browser.py).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page

from forq_trio import ForqClient
from support.browser import PHONE, Guard, guarded_page
from support.chromium import Chromium
from support.real_server import SECRET, RealServer, real_server
from support.showcase import fill
from support.traffic import Traffic, live_producer
from support.ui_http import crawl, logged_in

OVER_HTTP = {"FORQ_ENV": "local"}  # cookies that need no TLS

OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Iterator[RealServer]:
    with real_server(
        tmp_path_factory.mktemp("world") / "forq.db", ui=True, FORQ_HISTORY="on", **OVER_HTTP
    ) as server:
        fill(server.url, SECRET)
        yield server


@pytest.fixture(scope="session")
def answers(world) -> dict[str, httpx.Response]:
    """The answer of `world` to each kind of path that a link leads to."""
    with logged_in(world.ui_url) as client:
        return dict(crawl(client))


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Iterator[RealServer]:
    """The server of `ui` as the tests before have left it: for tests whose queues have names of their own."""
    with real_server(tmp_path_factory.mktemp("shared") / "forq.db", ui=True, **OVER_HTTP) as server:
        yield server


@pytest.fixture
def ui(shared) -> RealServer:
    """Without queues, tasks and tokens."""
    with ForqClient(shared.url, SECRET) as client:
        empty(client)
    return shared


def empty(client: ForqClient) -> None:
    """Remove all queues and tokens."""
    names = [queue.queue for queue in client.queues()]
    for name in names:
        if name.endswith("-dlq"):
            for task in client.redrives(name):
                if task.state in ("running", "paused"):
                    client.cancel_redrive(name, task.id)
                client.dismiss_redrive(name, task.id)
        client.purge(name)
        client.reset_settings(name)
        client.resume(name)
    for name in names:
        client.delete_queue(name)
    for token in client.tokens():
        client.revoke_token(token.name)


@pytest.fixture
def own(tmp_path) -> Iterator[RealServer]:
    with real_server(tmp_path / "forq.db", ui=True, **OVER_HTTP) as server:
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
    """open_page(server, key=SECRET, **options of the context): a page that is logged in; key=None: one that is not.

    It is at no page yet. The form of the login is left to the tests of the login.
    """
    with ExitStack() as opened:
        browser = opened.enter_context(chromium.awake())

        def open_page(server: RealServer, key: str | None = SECRET, **options: Any) -> Page:
            page, guard = opened.enter_context(guarded_page(browser, server.ui_url, **options))
            guards[page] = guard
            if key is not None:
                with logged_in(server.ui_url, key) as http:
                    cookies = [{"name": name, "value": value} for name, value in http.cookies.items()]
                page.context.add_cookies([{**each, "url": server.ui_url} for each in cookies])
            return page

        yield open_page


@pytest.fixture
def page(ui, open_page) -> Page:
    return open_page(ui)


@pytest.fixture
def phone(ui, open_page) -> Page:
    return open_page(ui, **PHONE)


@pytest.fixture
def world_page(world, open_page) -> Page:
    return open_page(world)


@pytest.fixture
def producer(ui) -> Iterator[Traffic]:
    """Somebody who sends five messages a second to the queue `live`."""
    with live_producer(ui.url, SECRET, "live") as traffic:
        yield traffic
