"""The dialect without sockets: real broker, writer and readers over a real engine, called like a transport."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access
from forq_trio.http.message import Request, Response
from forq_trio.http.request_log import logging_requests
from forq_trio.http.router import HttpRouter
from forq_trio.http.sasquatch_api import SasquatchOptions, sasquatch_routes
from forq_trio.http.sasquatch_api.errors import answer
from forq_trio.http.throttle import Throttle
from forq_trio.jobs.compaction import Compaction
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import Engine
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from support.actors import on_the_loop

SECRET = "s" * 32
START_MS = 1_700_000_000_000
START_SECONDS = START_MS // 1_000


class SetClock:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def pass_seconds(self, seconds: float) -> None:
        self.ms += round(seconds * 1_000)


def not_watching() -> AbstractAsyncContextManager[None]:
    return nullcontext()


def make_request(
    method: str, path: str, body: bytes = b"", headers: Mapping[bytes, bytes] | None = None
) -> Request:
    """A request as a transport makes it. headers: None sends the right key and nothing else."""
    path, _, query = path.partition("?")
    if headers is None:
        headers = {b"x-api-key": SECRET.encode()}
    return Request(method, path, query, headers, body, "192.0.2.1", not_watching)


def json_of(response: Response) -> Any:
    """The JSON of an answer that says it is JSON."""
    assert response.content_type == b"application/json"
    return msgspec.json.decode(response.body)


class Api:
    """The handler with everything behind it. auth: False serves without keys."""

    def __init__(self, broker: Broker, writer: WriterActor, clock: SetClock) -> None:
        self.broker = broker
        self.writer = writer
        self.clock = clock
        self.serve()

    def serve(self, *, auth: bool = True, **options: int) -> None:
        """Serve with these options from now on."""
        access = Access(SECRET, self.broker.keys, Throttle()) if auth else None
        settings = SasquatchOptions(**options)
        routes = sasquatch_routes(self.broker, self.clock, settings, access, "1.2.3")
        self.handler = logging_requests(HttpRouter(routes, lambda error, request: answer(error)))

    async def call(
        self,
        endpoint: str,
        body: Any = b"",
        *,
        method: str = "POST",
        headers: Mapping[bytes, bytes] | None = None,
    ) -> Response:
        """The answer of an endpoint; a body that is not bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await self.handler(make_request(method, f"/{endpoint}", raw, headers))

    async def ok(self, endpoint: str, body: Any = b"", *, method: str = "POST") -> Any:
        """The JSON of an answer that has to be 200."""
        response = await self.call(endpoint, body, method=method)
        assert response.status == 200, response.body
        return json_of(response)

    async def error(self, endpoint: str, body: Any = b"", *, method: str = "POST") -> tuple[int, str]:
        """Status and code of an answer that has to be an error."""
        response = await self.call(endpoint, body, method=method)
        document = json_of(response)
        assert document.keys() == {"error"}
        assert document["error"].keys() == {"code", "message"}
        assert document["error"]["message"]
        return response.status, document["error"]["code"]

    async def send(self, text: str = "m", queue: str = "q", **members: Any) -> dict[str, Any]:
        """Send one message, which has to work."""
        return await self.ok("send", {"queue_name": queue, "message_body": text, **members})

    async def receive(self, queue: str = "q", **members: Any) -> list[dict[str, Any]]:
        """What there is now, without a wait."""
        found = await self.ok("receive", {"queue_name": queue, "wait_time_seconds": 0, **members})
        assert found.keys() == {"messages"}
        return found["messages"]

    async def texts(self, queue: str = "q", **members: Any) -> list[str]:
        """The bodies of what `receive` gives."""
        return [message["message_body"] for message in await self.receive(queue, **members)]

    async def length(self, queue: str = "q") -> tuple[int, int]:
        """How many are visible, and in flight, once everything that is due was dealt with."""
        await self.broker.healthcheck()
        found = await self.ok("queue_length", {"queue_name": queue})
        return found["count"], found["in_flight"]


@asynccontextmanager
async def open_api(engine: Engine) -> AsyncIterator[Api]:
    """A running writer and readers with the dialect in front of them."""
    clock = SetClock()
    writer = WriterActor(Store(engine, on_the_loop()), clock, Counters())
    readers = ReaderPool(engine.open_reader, size=2)
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        yield Api(Broker(writer, readers, clock, Compaction(writer, clock, engine.facts)), writer, clock)
        readers.close()
        writer.stop()
