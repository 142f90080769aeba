"""Handlers that run without a task of their own, and wait for the writer alone (forq_trio/in_place.py)."""

import contextvars
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.transport.http2 import frames
from forq_trio.in_place import require_task, runs_in_place
from forq_trio.inbox import Tick
from forq_trio.model import limits
from forq_trio.model.holders import Holder, HolderKind
from forq_trio.waiters import Call
from support.passes import Passes
from support.transport import Running, get, running

from .test_http2_rules import SETTINGS, frames_behind, request, status

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="nobody")


def admit(asked: Request) -> None:
    asked.in_place = True


class Writer:
    """Handlers wait for its calls, which the test resolves. ended: how each handler has ended."""

    def __init__(self) -> None:
        self.calls: list[Call[str]] = []
        self.called = trio.Event()
        self.unsent: list[str] = []
        self.steps: list[tuple[str, bool]] = []

    async def __call__(self, asked: Request) -> Response:
        self.steps.append((asked.path, runs_in_place()))
        if asked.path == "/at-once":
            return Response(200, b"at once")
        if asked.path == "/task":
            require_task()
            await trio.lowlevel.checkpoint()
            return NO_CONTENT
        NAME.set(asked.path)
        if asked.path.startswith("/watched"):
            async with asked.cancelled_on_disconnect():
                answer = await self.call()
        else:
            answer = await self.call()
            answer += await self.call()
        return Response(200, f"{NAME.get()} {answer}".encode(), on_unsent=lambda: self.unsent.append(answer))

    async def call(self) -> str:
        call: Call[str] = Call(Tick())  # type: ignore[arg-type]
        self.calls.append(call)
        self.called.set()
        self.called = trio.Event()
        return await call.wait()

    async def until_calls(self, count: int) -> None:
        while len(self.calls) < count:
            await self.called.wait()


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
async def transport(writer) -> AsyncIterator[Running]:
    async with running(writer, admit=admit) as transport:
        yield transport


async def test_the_outcome_of_a_call_is_answered_by_whoever_brings_it(transport, writer):
    client = await transport.connect()
    await client.send(get("/a"))
    await writer.until_calls(1)
    tasks = trio.lowlevel.current_statistics().tasks_living
    other = await transport.connect()
    await other.send(get("/b"))
    await writer.until_calls(2)
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert writer.calls[0].resolve("1")
    assert writer.calls[1].resolve("2")
    assert writer.calls[3].resolve("3")
    assert writer.calls[2].resolve("4")
    assert (await client.answer()).body == b"/a 14"
    assert (await other.answer()).body == b"/b 23"
    assert writer.steps == [("/a", True), ("/b", True)]
    assert NAME.get() == "nobody"


async def test_what_has_to_wait_for_something_else_begins_again_in_a_task(transport, writer):
    client = await transport.connect()
    await client.send(get("/task") + get("/at-once"))
    assert [(await client.answer()).status for _ in range(2)] == [204, 200]
    assert writer.steps == [("/task", True), ("/task", False), ("/at-once", True)]


async def test_requests_behind_one_that_waits_are_answered_after_it(transport, writer):
    client = await transport.connect()
    await client.send(get("/watched") + get("/at-once") + get("/watched/2"))
    await writer.until_calls(1)
    writer.calls[0].resolve("x")
    await writer.until_calls(2)
    writer.calls[1].resolve("y")
    bodies = [(await client.answer()).body for _ in range(3)]
    assert bodies == [b"/watched x", b"at once", b"/watched/2 y"]


async def test_an_error_of_a_call_is_the_handlers(writer):
    async with running(writer, admit=admit, errors_expected=True) as transport:
        client = await transport.connect()
        await client.send(get("/a") + get("/at-once"))
        await writer.until_calls(1)
        writer.calls[0].resolve(LookupError("a defect"))
        assert [(await client.answer()).status for _ in range(2)] == [500, 200]
        assert [type(error) for error in transport.errors] == [LookupError]


@pytest.mark.parametrize("early", [b"", get("/early")], ids=["alone", "with unread bytes"])
async def test_the_call_of_a_client_that_hangs_up_is_abandoned(transport, writer, early):
    client = await transport.connect()
    await client.send(get("/watched") + early)
    await writer.until_calls(1)
    await trio.testing.wait_all_tasks_blocked(cushion=0.03)
    await client.close()
    await transport.until_nobody_is_connected()
    assert writer.calls[0].abandoned
    assert not writer.calls[0].resolve("too late")


async def test_an_outcome_for_a_client_that_has_left_is_undone(transport, writer):
    client = await transport.connect()
    await client.send(get("/a"))
    await writer.until_calls(1)
    await client.close()
    await trio.testing.wait_all_tasks_blocked(cushion=0.03)
    writer.calls[0].resolve("1")
    writer.calls[1].resolve("2")
    assert writer.unsent == ["12"]


async def test_calls_are_abandoned_when_the_server_stops_in_time(transport, writer):
    client = await transport.connect()
    await client.send(get("/a"))
    await writer.until_calls(1)
    assert not await transport.server.drain(0)
    assert writer.calls[0].abandoned
    assert await client.ends() == b""


async def test_a_handler_that_waits_for_something_else_without_a_word_is_an_error():
    async def handler(asked: Request) -> Response:
        if asked.path == "/bad":
            await trio.sleep_forever()
        return NO_CONTENT

    async with running(handler, admit=admit, errors_expected=True) as transport:
        client = await transport.connect()
        await client.send(get("/bad") + get("/good"))
        assert [(await client.answer()).status for _ in range(2)] == [500, 204]
        assert [type(error) for error in transport.errors] == [RuntimeError]


async def test_what_goes_wrong_when_an_answer_is_undone_is_reported_and_ends_nothing_else(writer):
    def undo() -> None:
        raise LookupError("a defect")

    async def handler(asked: Request) -> Response:
        return Response(200, await writer.call() if asked.path == "/wait" else b"", on_unsent=undo)

    async with running(handler, admit=admit, errors_expected=True) as transport:
        for _ in range(2):
            client = await transport.connect()
            await client.send(get("/wait"))
            await writer.until_calls(1)
            await client.close()
            await trio.testing.wait_all_tasks_blocked(cushion=0.03)
            assert writer.calls.pop().resolve(b"x")
            await transport.until_nobody_is_connected()
        other = await transport.connect()
        await other.send(get("/at-once"))
        assert (await other.answer()).status == 200
        assert [type(error) for error in transport.errors] == [LookupError, LookupError]


async def test_the_call_of_a_stream_whose_client_left_is_abandoned_when_the_server_stops(transport, writer):
    """Until then it goes on: a send that was asked for is stored."""
    client = await transport.connect()
    await client.send(frames.PREFACE + SETTINGS + request((b":path", b"/a")))
    await writer.until_calls(1)
    await client.close()
    await trio.testing.wait_all_tasks_blocked(cushion=0.03)
    assert not writer.calls[0].abandoned
    assert not await transport.server.drain(0)
    assert writer.calls[0].abandoned


async def test_what_is_answered_once_connections_finish_says_that_its_connection_closes(transport, writer):
    client = await transport.connect()
    await client.send(get("/watched") + get("/at-once"))
    await writer.until_calls(1)
    transport.server.finish_connections()
    writer.calls[0].resolve("x")
    answer = await client.answer()
    assert (answer.body, answer.headers[b"connection"]) == (b"/watched x", b"close")
    assert await client.ends() == b""


async def test_pipelined_requests_are_answered_a_few_in_each_pass():
    """However many connections there are, others wait for a few requests of each at most."""
    passes: list[int] = []
    count = Passes()

    async def handler(asked: Request) -> Response:
        passes.append(count.count)
        return NO_CONTENT

    trio.lowlevel.add_instrument(count)
    try:
        async with running(handler, admit=admit) as transport:
            client = await transport.connect()
            await client.send(get() * 50)
            assert [(await client.answer()).status for _ in range(50)] == [204] * 50
    finally:
        trio.lowlevel.remove_instrument(count)
    assert max(Counter(passes).values()) <= limits.REQUESTS_AT_ONCE_MAX


async def test_a_stream_of_http2_needs_no_task_either(transport, writer):
    client = await transport.connect()
    await client.send(frames.PREFACE + SETTINGS + request((b":path", b"/a")))
    await writer.until_calls(1)
    writer.calls[0].resolve("1")
    writer.calls[1].resolve("2")
    last = await frames_behind(client, b"", [frames.HEADERS])
    assert status(last[frames.HEADERS][1]) == 200
    assert writer.steps == [("/a", True)]


async def test_a_reset_stream_abandons_its_call(transport, writer):
    client = await transport.connect()
    await client.send(frames.PREFACE + SETTINGS + request((b":path", b"/watched")))
    await writer.until_calls(1)
    await client.send(frames.reset_frame(1, frames.CANCEL))
    await client.arrived()
    assert writer.calls[0].abandoned


@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
async def test_a_connection_belongs_to_whom_its_handler_finds_while_that_waits(writer: Writer, http2: bool):
    """A long poll that is signed: until its answer it could be replaced as one without a key."""

    async def signed(asked: Request) -> Response:
        asked.holder = Holder(HolderKind.TOKEN, "one")
        return await writer(asked)

    async with running(signed, admit=admit) as transport:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS + request() if http2 else get("/"))
        await writer.until_calls(1)
        assert transport.server.budgets["connections"].used == 1
        writer.calls[0].resolve("a")
        await writer.until_calls(2)
        writer.calls[1].resolve("b")
        await client.arrived()
        assert transport.server.budgets["connections"].used == 1
    assert transport.server.budgets["connections"].used == 0
