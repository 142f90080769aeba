"""The real actor system, and in front of it the face that was asked for, on simulated time."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import trio

from forq_trio import AsyncForqClient
from forq_trio.http.access import Access
from forq_trio.http.forq_api import answer_error, forq_routes
from forq_trio.http.router import HttpRouter
from forq_trio.http.sqs_api import SqsAccount, sqs_routes
from forq_trio.http.throttle import Throttle
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import System, open_system
from support.actors import TrioClock, on_the_loop

from .broker_face import BrokerFace
from .face import Face
from .http_face import HttpFace

SECRET = "s" * 32
REAL_SECONDS_MAX = 120.0
# Days pass between two requests here; when a connection counts as idle is tested with the transport.
PATIENT = TransportConfig(idle_seconds=1e9)

KINDS = ("broker", "http")


@asynccontextmanager
async def open_face(
    kind: str, url: str, durability: str = "normal", *, history: bool = False, events: bool = False
) -> AsyncIterator[Face]:
    """A face of a queue with Forq's settings, with the logs that are asked for.

    Hanging is the failure of a test, in real time.
    """
    engine = open_engine(url, EngineSettings(history=history, events=events), durability)
    with real_deadline(REAL_SECONDS_MAX):
        async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
            if kind == "broker":
                yield BrokerFace(system.broker)
            else:
                async with _http(system) as face:
                    yield face


@asynccontextmanager
async def _http(system: System) -> AsyncIterator[HttpFace]:
    """A server on the loopback, and the clients that reach it."""
    errors: list[Exception] = []
    access = Access(SECRET, system.broker.keys, Throttle())
    account = SqsAccount("000000000000", "us-east-1")
    routes = [
        *forq_routes(system.broker, access, system.monitor),
        *sqs_routes(system.broker, account, None, answer_error),
    ]
    handler = HttpRouter(routes, answer_error)
    server = Server(handler, await open_listeners("127.0.0.1", 0), PATIENT, on_error=errors.append)
    url = f"http://127.0.0.1:{server.ports[0]}"
    transport = httpx.AsyncHTTPTransport(
        verify=False
    )  # there is no TLS here whose roots would be worth loading
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        async with (
            AsyncForqClient(url, SECRET, retry_seconds=0) as client,
            httpx.AsyncClient(
                base_url=f"{url}/api/v1/queues",
                headers={"X-API-Key": SECRET},
                transport=transport,
                timeout=None,
            ) as http,
        ):
            yield HttpFace(client, http, system.broker)
        await server.drain(0)
    assert errors == []


@contextmanager
def real_deadline(seconds: float) -> Iterator[None]:
    """Cancel the body after so much of real time: under a mock clock, trio's own time-outs never come."""
    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:
        alarm = threading.Timer(seconds, token.run_sync_soon, (scope.cancel,))
        alarm.daemon = True
        alarm.start()
        try:
            yield
        finally:
            alarm.cancel()
    assert not scope.cancelled_caught, f"not done after {seconds} s"
