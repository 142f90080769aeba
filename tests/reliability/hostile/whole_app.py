"""All dialects over the memory engine, with something in the queues to ask for, and one exchange over a socket."""

import math
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access
from forq_trio.http.forq_api import answer_error, forq_routes
from forq_trio.http.forq_api.refusals import transport_answer
from forq_trio.http.message import Handler, Request, Response, admit_everybody
from forq_trio.http.router import HttpRouter, Route
from forq_trio.http.sasquatch_api import SasquatchOptions, sasquatch_routes
from forq_trio.http.throttle import Throttle
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.client_socket import ClientSocket
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http2.block_encoder import BlockEncoder
from forq_trio.http.transport.http_socket import HttpSocket
from forq_trio.http.transport.poller import Poller
from forq_trio.http.transport.response_bytes import ResponseEncoder
from forq_trio.http.transport.services import Services
from forq_trio.jobs.compaction import Compaction
from forq_trio.model.budget import Budget
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.monitor.ages import Ages
from forq_trio.monitor.monitor import Monitor
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from oracle.engine import MemoryEngine
from support.forq_api import SetClock

SECRET = "s" * 32
SECONDS_MAX = 10.0


@dataclass(frozen=True)
class WholeApp:
    """queue `q` has ready messages and one that is held by `receipt`, `q-dlq` a dead letter called `dead_letter`."""

    routes: list[Route]
    handler: Handler
    receipt: str
    dead_letter: str


@asynccontextmanager
async def open_whole_app() -> AsyncIterator[WholeApp]:
    """Made anew for each input, so that an input alone says what happens; without the document, which takes time."""
    clock = SetClock()
    engine = MemoryEngine(EngineSettings())
    counters = Counters()
    writer = WriterActor(Store(engine), clock, counters)
    readers = ReaderPool(engine.open_reader, size=1, deadline_seconds=math.inf)
    broker = Broker(writer, readers, clock, Compaction(writer, clock, engine.facts))
    ages = Ages(broker.known, readers, counters, clock)
    monitor = Monitor(broker.known, counters, ages, trio.current_time, clock)
    async with trio.open_nursery() as nursery:
        await nursery.start(writer.run)
        async with trio.open_nursery() as tasks:
            await tasks.start(broker.redrive_tasks.run)
            access = Access(SECRET, broker.keys, Throttle())
            routes = [
                *forq_routes(broker, access, monitor),
                *sasquatch_routes(broker, clock, SasquatchOptions(), access, "1"),
            ]
            yield await _filled(broker, routes)
            tasks.cancel_scope.cancel()
        readers.close()
        writer.stop()


async def _filled(broker: Broker, routes: list[Route]) -> WholeApp:
    await broker.produce("q", "dead", max_attempts=1)
    (dead,) = await broker.receive("q", wait_ms=0)
    await broker.nack("q", [dead.receipt], reason="it failed")
    await broker.produce_many("q", [NewMessage(content) for content in ("held", "ready", "ready too")])
    (held,) = await broker.receive("q", wait_ms=0)
    return WholeApp(routes, HttpRouter(routes, answer_error), held.receipt, dead.id)


@dataclass
class Exchange:
    """What came of some bytes: the answers as bytes, and the methods of the requests whose heads were whole."""

    received: bytes = b""
    methods: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected TCP sockets that do not block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


async def exchange(handler: Handler, config: TransportConfig, pieces: Sequence[bytes]) -> Exchange:
    """Send the pieces to a connection of the transport, then the end, and read until it has closed."""
    seen = Exchange()

    admit = handler.admit if isinstance(handler, HttpRouter) else admit_everybody

    def noting(request: Request) -> Response | None:
        seen.methods.append(request.method)
        return admit(request)

    body_budget = Budget(config.bodies_bytes_max)
    answer_budget = AnswerBudget(config.answers_bytes_max)
    poller = Poller()
    ours, theirs = socket_pair()
    connections: OpenConnections[ClientSocket] = OpenConnections(1)

    async def send(stream: trio.SocketStream) -> None:
        try:
            for piece in pieces:
                await stream.send_all(piece)
                await trio.lowlevel.checkpoint()
            await stream.send_eof()
        except trio.BrokenResourceError:
            return

    async with trio.open_nursery() as nursery:
        services = Services(
            noting,
            handler,
            config,
            ResponseEncoder(),
            BlockEncoder(),
            body_budget,
            answer_budget,
            poller,
            nursery.start_soon,
            trio.current_time,
            seen.errors.append,
            transport_answer,
        )
        nursery.start_soon(poller.run)
        ended = trio.Event()
        connections.on_empty = ended.set
        connection = HttpSocket(services, theirs, "192.0.2.1", connections)
        connections.add(connection, "192.0.2.1", 0.0)
        async with trio.open_nursery() as exchanging:
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
            exchanging.start_soon(send, stream)
            seen.received = await _until_end(stream)
        await ended.wait()
        await stream.aclose()
        nursery.cancel_scope.cancel()
    poller.close()
    assert body_budget.used == 0, "a connection that has ended still counts a body"
    assert answer_budget.used == 0, "a connection that has ended still counts an answer"
    return seen


async def _until_end(stream: trio.SocketStream) -> bytes:
    received = bytearray()
    try:
        async for portion in stream:
            received += portion
    except trio.BrokenResourceError:
        pass
    return bytes(received)


OWN = "of the transport"
"""Stands for the method of a request that the transport refuses itself."""


def check_answers(received: bytes, methods: Sequence[str]) -> list[int]:
    """Read all answers as h11 does, which is strict; the last may be the transport's own. Returns their statuses."""
    found = []
    for method in [*methods, OWN]:
        if not received:
            break
        if method == OWN and received.endswith(b"\r\n\r\n"):
            method = "HEAD"  # refused, but its head said so: as JSON, a body does not end like that
        parser = h11.Connection(h11.CLIENT)
        parser.send(
            h11.Request(method="HEAD" if method == "HEAD" else "GET", target="/", headers=[("host", "x")])
        )
        parser.send(h11.EndOfMessage())
        parser.receive_data(received)
        while not isinstance(event := parser.next_event(), h11.EndOfMessage):
            assert event is not h11.NEED_DATA, f"an answer breaks off: {received[-200:]!r}"
            if isinstance(event, h11.Response):
                found.append(event.status_code)
        received = parser.trailing_data[0]
    assert received == b"", f"more answers than requests: {received[:200]!r}"
    return found
