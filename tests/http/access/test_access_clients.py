"""Tokens over real connections: made, listed and revoked with the client, and shown by one that holds no secret."""

import re
from collections.abc import AsyncIterator, Callable

import pytest
import trio

from forq_trio import AsyncForqClient, ForqError, InvalidToken
from forq_trio.http.access import Access
from forq_trio.http.forq_api import answer_error, forq_routes
from forq_trio.http.router import HttpRouter
from forq_trio.http.throttle import Throttle
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server
from forq_trio.model.clock import SystemClock
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import open_system

SECRET = "s" * 32
Client = Callable[[str], AsyncForqClient]


@pytest.fixture
async def client_of(tmp_path) -> AsyncIterator[Client]:
    """Makes a client that shows a key to one and the same server."""
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    errors: list[Exception] = []
    async with open_system(open_engine(url, EngineSettings(), "normal"), SystemClock()) as system:
        access = Access(SECRET, system.broker.keys, Throttle())
        handler = HttpRouter(forq_routes(system.broker, access, system.monitor), answer_error)
        listeners = await open_listeners("127.0.0.1", 0)
        server = Server(handler, listeners, TransportConfig(), on_error=errors.append)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            clients: list[AsyncForqClient] = []

            def client_of(key: str) -> AsyncForqClient:
                clients.append(AsyncForqClient(f"http://127.0.0.1:{server.ports[0]}", key, retry_seconds=0))
                return clients[-1]

            yield client_of
            for client in clients:
                await client.aclose()
            await server.drain(0)
    assert errors == []


async def refused(call) -> tuple[str, str | None]:
    """The code of the error that an awaitable ends with, and the scope that is missing."""
    with pytest.raises(ForqError) as raised:
        await call
    missing = re.search("the scope ([a-z]+)", raised.value.message)
    return raised.value.code, missing and missing[1]


async def test_made_used_listed_and_revoked(client_of: Client):
    owner = client_of(SECRET)
    made = await owner.create_token("a", ["produce"], "orders*", expires_at=2_000_000_000_000)
    producer = client_of(made.token)
    assert made.name == "a"
    assert (await producer.produce("orders.eu", "m")).sequence == 1
    assert await refused(producer.produce("payments", "m")) == ("forbidden", "produce")
    assert await refused(producer.receive("orders.eu", wait_ms=0)) == ("forbidden", "consume")
    assert await refused(producer.tokens()) == ("forbidden", "admin")
    (token,) = await owner.tokens()
    assert (token.name, token.scopes, token.queues, token.expired) == ("a", ("produce",), "orders*", False)
    assert token.expires_at == 2_000_000_000_000
    assert token.last_used_at is not None
    assert token.last_used_at >= token.created_at
    await owner.revoke_token("a")
    assert await refused(producer.produce("orders.eu", "m")) == ("unauthorized", None)
    assert await owner.tokens() == []
    assert await refused(owner.revoke_token("a")) == ("not_found.token", None)
    assert (await owner.queue_stats("orders.eu")).ready == 1


async def test_what_is_wrong_is_said(client_of: Client):
    owner = client_of(SECRET)
    with pytest.raises(InvalidToken, match=r"^name: ") as raised:
        await owner.create_token("a b", ["browse"])
    assert (raised.value.field, raised.value.code) == ("name", "bad_request.token.name")
    assert await refused(owner.create_token("a", [])) == ("bad_request.token.scopes", None)
    soon = owner.create_token("a", ["browse"], expires_at=1)
    assert await refused(soon) == ("bad_request.token.expiresAt", None)
    for name in ("", ".", ".."):
        assert await refused(owner.revoke_token(name)) == ("not_found.token", None)
