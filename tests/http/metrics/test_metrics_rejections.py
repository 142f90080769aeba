"""Rejections by cause: each is counted where it happens, once, and what is no rejection is not."""

import threading
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.http.forq_api.refusals import Refused, answer, error_body_start, forqs_answer
from forq_trio.http.message import Response
from forq_trio.http.rejections import counting_refusals, counting_rejections
from forq_trio.http.transport.config import TransportConfig, refuse_without_body
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server
from forq_trio.model import errors, limits
from forq_trio.model.commands import Configure, ProduceEach, ProduceMany
from forq_trio.model.errors import (
    MessageNotFound,
    Overloaded,
    QueueFull,
    ReadDeadlineExceeded,
    Stopping,
    StorageUnavailable,
)
from forq_trio.model.forq_error import REASONS
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import MessageInfo
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.system import open_system
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.rejections import Cause, cause_of
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, SlowCommit, TrioClock, in_a_thread, on_the_loop, recorded, until
from support.forq_api import make_request
from support.words import Pending, claim, send


def counted(counters: Counters) -> dict[Cause, int]:
    """The causes that were counted at all."""
    return {cause: count for cause, count in counters.rejections.items() if count}


def test_the_cause_of_an_error() -> None:
    for error, cause in (
        (errors.Overloaded(), Cause.OVERLOADED),
        (errors.QueueFull(), Cause.QUEUE_FULL),
        (errors.Stopping(), Cause.STOPPING),
        (errors.StorageUnavailable(), Cause.STORAGE_UNAVAILABLE),
        (errors.StorageFull(), Cause.STORAGE_FULL),
        (errors.StorageLost(), Cause.STORAGE_LOST),
        (errors.CommandRefused(), Cause.STORAGE_UNAVAILABLE),
        (errors.ReadDeadlineExceeded(), Cause.READ_TIMEOUT),
        (errors.OutcomeUnknown(), None),
        (errors.MessageNotFound(), None),
    ):
        assert cause_of(error) is cause, error


async def test_a_full_inbox(engine, mock_clock) -> None:
    async with (
        recorded(engine, policy=in_a_thread(), inbox_calls_max=1) as (writer, counters),
        trio.open_nursery() as nursery,
    ):
        slow = SlowCommit(engine)
        Pending(nursery, writer, send())
        await slow.reached()
        Pending(nursery, writer, send())
        await wait_all_tasks_blocked()
        refused = Pending(nursery, writer, send())
        await wait_all_tasks_blocked()
        mock_clock.jump(limits.INBOX_FULL_WAIT_SECONDS + 0.001)
        assert isinstance(await refused.finished(), Overloaded)
        assert counted(counters) == {Cause.OVERLOADED: 1}
        slow.go_on()


async def test_too_many_receivers(engine, mock_clock) -> None:
    async with recorded(engine, parked_max=1) as (writer, counters), trio.open_nursery() as nursery:
        Pending(nursery, writer, claim(wait_ms=1_000))
        await wait_all_tasks_blocked()
        with pytest.raises(Overloaded):
            await writer.execute(claim(wait_ms=1_000))
        assert counted(counters) == {Cause.OVERLOADED: 1}
        nursery.cancel_scope.cancel()


async def test_a_full_queue_counts_once_a_call_or_once_a_message_of_those_refused_alone(
    engine, mock_clock
) -> None:
    async with recorded(engine) as (writer, counters):
        await writer.execute(Configure("q", SettingsChange(max_messages=1)))
        await writer.execute(send())
        with pytest.raises(QueueFull):
            await writer.execute(send())
        assert counted(counters) == {Cause.QUEUE_FULL: 1}
        with pytest.raises(QueueFull):
            await writer.execute(ProduceMany("q", (NewMessage("a"), NewMessage("b"))))
        assert counted(counters) == {Cause.QUEUE_FULL: 2}
        messages = (("q", NewMessage("a")), ("free", NewMessage("b")), ("q", NewMessage("c")))
        refused = [type(outcome) for outcome in await writer.execute(ProduceEach(messages))]
        assert refused.count(QueueFull) == 2
        assert counted(counters) == {Cause.QUEUE_FULL: 4}


async def test_a_database_that_refuses(engine, mock_clock) -> None:
    async with recorded(engine) as (writer, counters):
        engine.refusals = 1
        with pytest.raises(StorageUnavailable):
            await writer.execute(send())
        assert counted(counters) == {Cause.STORAGE_UNAVAILABLE: 1}


async def test_a_writer_that_stops(engine, mock_clock) -> None:
    async with recorded(engine) as (writer, counters):
        writer.stop()
        with pytest.raises(Stopping):
            await writer.execute(send())
        assert counted(counters) == {Cause.STOPPING: 1}


async def test_what_succeeds_and_what_is_the_callers_mistake_is_no_rejection(mock_clock) -> None:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock()) as system:
        await system.broker.produce("q", "x")
        with pytest.raises(MessageNotFound):
            await system.broker.ack_message(
                "q", "00000000-0000-8000-8000-000000000000", "00000000-0000-8000-8000-000000000000"
            )
        assert counted(system.counters) == {}


class StuckReader:
    """Finds nothing out until it is interrupted."""

    def __init__(self) -> None:
        self._interrupted = threading.Event()

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        assert self._interrupted.wait(timeout=120), "the read was never interrupted"
        raise ReadDeadlineExceeded

    def interrupt(self) -> None:
        self._interrupted.set()

    def close(self) -> None:
        """Nothing to close."""


async def test_a_read_that_takes_too_long(autojump_clock) -> None:
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    engine.open_reader = StuckReader
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        await system.broker.produce("q", "x")
        with pytest.raises(ReadDeadlineExceeded):
            await system.broker.peek("q")
        assert counted(system.counters).keys() == {
            Cause.READ_TIMEOUT
        }  # that of the job that measures ages, too


def answering(response: Response) -> Callable[[object], Awaitable[Response]]:
    async def handle(_: object) -> Response:
        await trio.lowlevel.checkpoint()
        return response

    return handle


async def test_answers_of_handlers() -> None:
    for status, cause in (
        *((status, None) for status in (200, 204, 400, 404, 405, 409, 500, 503)),
        (401, Cause.UNAUTHORIZED),
        (403, Cause.FORBIDDEN),
        (413, Cause.TOO_LARGE),
        (429, Cause.THROTTLED),
    ):
        counters = Counters()
        response = Response(status, b"{}")
        assert await counting_rejections(answering(response), counters)(None) is response
        assert counted(counters) == ({} if cause is None else {cause: 1}), status


async def test_a_content_that_is_too_large_is_told_from_other_bad_requests() -> None:
    """In either form of an answer."""
    counters = Counters()
    request = make_request("POST", "/api/v1/queues/q/messages")
    for reason in REASONS.values():
        if reason.status == 400:
            for response in (answer(Refused(reason)), forqs_answer(Refused(reason), request)):
                handler = counting_rejections(
                    answering(response), counters, error_body_start(errors.ContentTooLarge)
                )
                await handler(request)
    assert errors.ContentTooLarge.status == 400
    assert counted(counters) == {Cause.TOO_LARGE: 2}


@pytest.mark.parametrize(
    ("sent", "status", "cause"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2_000 + b"\r\n\r\n", 431, Cause.TOO_LARGE),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n", 413, Cause.TOO_LARGE),
        (b"GET /" + b"x" * 900 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, Cause.TOO_LARGE),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n" + b"x" * 899, 503, Cause.OVERLOADED),
        (b"GET / HTTP/1.1\r\nHost:", 408, Cause.SLOW_REQUEST),
        (b"what?\r\n\r\n", 400, None),
    ],
)
async def test_answers_of_the_transport(sent: bytes, status: int, cause: Cause | None) -> None:
    counters = Counters()
    config = TransportConfig(
        header_bytes_max=1_000,
        uri_bytes_max=500,
        body_bytes_max=1_000,
        bodies_bytes_max=100,
        header_seconds=0.05 if cause is Cause.SLOW_REQUEST else 20.0,
    )
    server = Server(
        answering(Response(204)),
        await open_listeners("127.0.0.1", 0),
        config,
        on_error=pytest.fail,
        refuse=counting_refusals(refuse_without_body, counters),
    )
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            async with await trio.open_tcp_stream("127.0.0.1", server.ports[0]) as client:
                await client.send_all(sent)
                answer = await client.receive_some()
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            await until(lambda: server.connections == 0)
            await server.drain(0)
    assert counted(counters) == ({} if cause is None else {cause: 1})
