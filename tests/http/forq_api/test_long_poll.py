"""Waiting for a message (F3): what happens to a message whose consumer went away, and to who waits when it all ends.

Who is served, when, and for how long is tested in `tests/faces`, with both endpoints.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from forq_trio.http.message import Request, Response
from forq_trio.model import limits
from support.actors import all_idle
from support.forq_api import SECRET, Api, json_of, make_request

WAITING = ["GET messages", "POST messages/receive"]


class Consumer:
    """A waiting request whose client can go away, and its answer once there is one."""

    def __init__(self, api: Api, kind: str) -> None:
        method, path = kind.split()
        body = b'{"waitMs":%d}' % limits.WAIT_MS_MAX if method == "POST" else b""
        self.request = make_request(method, f"/api/v1/queues/q/{path}", body)
        self.request.watch = self.watch
        self.answer: Response | None = None
        self.left = False
        self._watched = False
        self._api = api
        self._scope = trio.CancelScope()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """As transports do it: while it is open, the client's going away cancels the handler."""
        self._watched = True
        yield
        self._watched = False

    def leave(self) -> None:
        if self._watched:
            self._scope.cancel()

    async def run(self) -> None:
        with self._scope:
            self.answer = await self._api.handler(self.request)
        self.left = self._scope.cancelled_caught


async def park(api: Api, nursery: trio.Nursery, kind: str) -> Consumer:
    consumer = Consumer(api, kind)
    nursery.start_soon(consumer.run)
    await all_idle()
    assert consumer.answer is None
    return consumer


def content_of(answer: Response | None) -> str:
    assert answer is not None
    body = json_of(answer)
    (message,) = body.get("messages", [body])
    return message["content"]


async def ready(api: Api) -> int:
    await all_idle()
    return api.broker.known.counts()["q"].ready


@pytest.mark.parametrize("kind", WAITING)
async def test_f3_a_client_that_leaves_stops_waiting_at_once(
    api: Api, kind: str, mock_clock: trio.testing.MockClock
):
    async with trio.open_nursery() as nursery:
        consumer = await park(api, nursery, kind)
        consumer.leave()
    assert consumer.left
    assert api.broker.known.waiting("q") == 0
    await api.send("m")
    assert await ready(api) == 1


@pytest.mark.parametrize("kind", WAITING)
async def test_f3_a_client_that_leaves_as_its_message_comes_loses_nothing(
    api: Api, kind: str, mock_clock: trio.testing.MockClock
):
    async with trio.open_nursery() as nursery:
        consumer = await park(api, nursery, kind)
        async with trio.open_nursery() as race:
            race.start_soon(api.send, "m")
            race.start_soon(leave_when, consumer, lambda: api.broker.known.waiting("q") == 0)
        await all_idle()
    if consumer.answer is not None and consumer.answer.on_unsent is not None:
        consumer.answer.on_unsent()
    assert await ready(api) == 1
    (message,) = json_of(await api.call("GET", "q/peek"))["messages"]
    assert message["attempts"] == 0


async def leave_when(consumer: Consumer, condition: Callable[[], bool]) -> None:
    while not condition():
        await trio.lowlevel.checkpoint()
    consumer.leave()


@pytest.mark.parametrize("kind", WAITING)
async def test_an_answer_nobody_read_gives_its_message_back(api: Api, kind: str):
    await api.send("m")
    consumer = Consumer(api, kind)
    await consumer.run()
    assert content_of(consumer.answer) == "m"
    assert consumer.answer is not None
    assert consumer.answer.on_unsent is not None
    assert await ready(api) == 0
    consumer.answer.on_unsent()
    assert await ready(api) == 1


@pytest.mark.parametrize("kind", WAITING)
async def test_a_server_that_stops_answers_those_who_wait(
    api: Api, kind: str, mock_clock: trio.testing.MockClock
):
    async with trio.open_nursery() as nursery:
        consumer = await park(api, nursery, kind)
        api.writer.stop()
    assert consumer.answer is not None
    assert consumer.answer.status in (200, 204)
    assert await api.code("GET", "q/messages") == (503, "forq.stopping")


async def test_errors_of_the_wait_are_answered(api: Api, mock_clock: trio.testing.MockClock):
    stopping = Request(
        "GET",
        "/api/v1/queues/q/messages",
        "",
        {b"x-api-key": SECRET.encode()},
        b"",
        "192.0.2.1",
        lambda: watch(),
    )

    @asynccontextmanager
    async def watch() -> AsyncIterator[None]:
        api.writer.stop()
        yield

    response = await api.handler(stopping)
    assert (response.status, json_of(response)["code"]) == (503, "forq.stopping")


async def test_who_leaves_waits_no_more_for_withdrawn_messages(api: Api):
    consumer = Consumer(api, "POST messages/receive")
    body = b'{"queues": ["q"], "after": %d}' % api.broker.known_workers.began_at
    consumer.request = make_request("POST", "/api/v1/withdrawn", body)
    consumer.request.watch = consumer.watch
    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer.run)
        await all_idle()
        assert api.broker.known_workers.polls.used == 1
        consumer.leave()
    assert (consumer.left, consumer.answer, api.broker.known_workers.polls.used) == (True, None, 0)
