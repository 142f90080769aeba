"""One server for all tests, a queue of its own for each, and every client in the same words.

What an operation means is tested in `tests/faces`, by the asynchronous client on trio. The blocking client is generated
from it: here it is the one that makes calls. What waits for sockets is tested on trio and asyncio, too (`kind`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from anyio.from_thread import start_blocking_portal

from forq_trio import AsyncForqClient, ForqClient
from support.fake_transport import FakeTransport, Handler
from support.in_process import in_process_server
from support.real_server import SECRET

Call = Callable[..., Any]


@contextmanager
def calls_of(kind: str, url: str, secret: str = SECRET, handler: Handler | None = None) -> Iterator[Call]:
    """Calls of one client by their names: call("produce", "orders", "a"). kind: sync, trio or asyncio.

    handler: answers the requests of the blocking client in place of a server.
    """
    if kind == "sync":
        transport = None if handler is None else FakeTransport(handler)
        with ForqClient(url, secret, retry_seconds=0, transport=transport) as client:
            yield lambda name, *arguments, **options: getattr(client, name)(*arguments, **options)
        return
    with start_blocking_portal(kind) as portal:
        aio = AsyncForqClient(url, secret, retry_seconds=0)
        with portal.wrap_async_context_manager(aio):
            yield lambda name, *arguments, **options: portal.call(
                partial(getattr(aio, name), *arguments, **options)
            )


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"q-{uuid4().hex}"


@pytest.fixture(scope="session", params=["sync", "trio", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    """A client, and for the asynchronous one what it runs on: each has waits of its own."""
    return request.param


@pytest.fixture(scope="session")
def call(url: str) -> Iterator[Call]:
    """Calls of the blocking client, which all tests share."""
    with calls_of("sync", url) as call:
        yield call


@pytest.fixture(scope="session", params=["sync", "asyncio"])
def either(request: pytest.FixtureRequest, url: str) -> Iterator[Call]:
    """Calls of either client, for operations that `tests/faces` does not have."""
    with calls_of(request.param, url) as call:
        yield call
