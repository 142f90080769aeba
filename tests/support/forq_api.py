"""The dialect without sockets: real broker, writer and readers over the memory engine, called like a transport."""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access, ApiKeyGate
from forq_trio.http.forq_api import answer_error, forq_routes, openapi_routes
from forq_trio.http.forq_api.health import About, HealthCheck
from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.http.forq_api.possible_errors import possible_errors
from forq_trio.http.message import Handler, Request, Response
from forq_trio.http.router import HttpRouter, Route
from forq_trio.http.throttle import Throttle
from forq_trio.jobs.backup import BackupJob
from forq_trio.jobs.backup_copy import BackupSettings
from forq_trio.jobs.compaction import Compaction
from forq_trio.jobs.database_watch import DatabaseWatch
from forq_trio.model import limits
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.monitor import Monitor
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from oracle.engine import MemoryEngine
from support.actors import on_the_loop
from support.exposition import of_counters

SECRET = "s" * 32
ASKING_FOR_MORE = {b"x-api-key": SECRET.encode(), b"x-forq-answer": b"full"}
METRICS_SECRET = "m" * 32
START_MS = 1_700_000_000_000
ABOUT = About(version="1.2.3", engine="memory", durability="none")


class SetClock:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms


class Seconds:
    """A monotonic clock that stands still until it is set."""

    def __init__(self) -> None:
        self.value = 1_000.0

    def __call__(self) -> float:
        return self.value


def not_watching() -> AbstractAsyncContextManager[None]:
    return nullcontext()


def make_request(
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[bytes, bytes] | None = None,
    client: str = "192.0.2.1",
) -> Request:
    """A request as a transport makes it. headers: None sends the right key and nothing else."""
    path, _, query = path.partition("?")
    if headers is None:
        headers = {b"x-api-key": SECRET.encode()}
    return Request(method, path, query, headers, body, client, not_watching)


def json_of(response: Response) -> Any:
    """The JSON of an answer that says it is JSON."""
    assert response.content_type == b"application/json"
    return msgspec.json.decode(response.body)


def blamed(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an error, or of a refused result, without `message`, which has to be fit for people."""
    rest = dict(answer)
    message = rest.pop("message")
    assert message.isprintable()
    assert not message[0].isupper()
    assert 5 < len(message) <= limits.ERROR_MESSAGE_LENGTH_MAX
    return rest


def only_documented(router: HttpRouter) -> Handler:
    """The router; an error that the document of its route does not list fails the test."""

    async def handle(request: Request) -> Response:
        response = await router(request)
        if response.status >= 400 and request.route is not None:
            code = msgspec.json.decode(response.body)["code"]
            listed = possible_errors(request.route[0]).get(response.status, [])
            path = request.route[0].path
            assert code in [each.code for each in listed], f"{path} does not list {code}"
        return response

    return handle


class Api:
    """The handler with everything behind it."""

    def __init__(
        self,
        engine: Engine,
        writer: WriterActor,
        readers: ReaderPool,
        clock: SetClock,
        counters: Counters,
        backups: BackupSettings,
    ) -> None:
        self.backups = BackupJob(engine, writer, clock, backups)
        self.compaction = Compaction(writer, clock, engine.facts)
        self.broker = Broker(writer, readers, clock, self.compaction)
        self.writer = writer
        self.readers = readers
        self.clock = clock
        self.counters = counters
        self.seconds = Seconds()
        self.throttle = Throttle(self.seconds)
        ages = Ages(self.broker.known, readers, counters, clock)
        self.monitor = Monitor(self.broker.known, counters, ages, self.seconds, clock)
        self.database = DatabaseWatch(readers)
        self.routes: list[Route] = []
        self.handler = self.serve()

    def serve(self, *, require_receipt: bool = False, trust_proxy_headers: bool = False) -> Handler:
        """The handler of a server that is set up like this."""
        access = Access(SECRET, self.broker.keys, self.throttle, trust_proxy_headers=trust_proxy_headers)
        metrics_gate = ApiKeyGate(METRICS_SECRET, self.throttle, trust_proxy_headers=trust_proxy_headers)
        self.routes = [
            *forq_routes(
                self.broker, access, self.monitor, backups=self.backups, require_receipt=require_receipt
            ),
            *HealthCheck(self.broker, ABOUT, self.seconds, database=lambda: self.database.state).routes(),
            *MetricsPage(of_counters(self.counters)).routes(metrics_gate),
        ]
        self.routes += openapi_routes(self.routes, ABOUT.version)
        self.handler = only_documented(HttpRouter(self.routes, answer_error))
        return self.handler

    async def call(
        self, method: str, path: str, body: Any = b"", headers: Mapping[bytes, bytes] | None = None
    ) -> Response:
        """Ask for `path`, below the queues' prefix unless it is absolute; a body that is not bytes is sent as JSON."""
        if not path.startswith("/"):
            path = f"/api/v1/queues/{path}"
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await self.handler(make_request(method, path, raw, headers))

    async def code(self, method: str, path: str, body: Any = b"") -> tuple[int, str]:
        """Status and error code of the answer."""
        response = await self.call(method, path, body)
        return response.status, json_of(response)["code"]

    async def send(self, *contents: str, queue: str = "q") -> None:
        for content in contents:
            assert (await self.call("POST", f"{queue}/messages", {"content": content})).status == 204

    async def receive(self, queue: str = "q") -> dict[str, str]:
        """One message with all its members; it must be there."""
        response = await self.call("GET", f"{queue}/messages", headers=ASKING_FOR_MORE)
        assert response.status == 200
        return json_of(response)


@asynccontextmanager
async def open_api(engine: Engine | None = None, backups: BackupSettings | None = None) -> AsyncIterator[Api]:
    """A running writer and readers with the API in front of them. engine: None for the one in memory."""
    clock = SetClock()
    counters = Counters()
    engine = engine or MemoryEngine(EngineSettings())
    writer = WriterActor(Store(engine, on_the_loop()), clock, counters)
    # No deadline: time may jump while they read.
    readers = ReaderPool(engine.open_reader, size=2, deadline_seconds=math.inf)
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        async with trio.open_nursery() as tasks:
            api = Api(engine, writer, readers, clock, counters, backups or BackupSettings())
            tasks.start_soon(api.backups.run)
            tasks.start_soon(api.compaction.run)
            await tasks.start(api.broker.redrive_tasks.run)
            yield api
            tasks.cancel_scope.cancel()
        readers.close()
        writer.stop()
