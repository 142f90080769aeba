"""Waiting in /receive (S4, S9): woken by its own queue only, nothing lost when the client leaves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from forq_trio.http.message import Response
from support.actors import all_idle

from .harness import Api, json_of, make_request

PEEK = [False, True]


class Consumer:
    """A waiting request whose client can go away, and its answer once there is one."""

    def __init__(self, api: Api, queue: str, **members: Any) -> None:
        body = msgspec.json.encode({"queue_name": queue, **members})
        self.request = make_request("POST", "/receive", body)
        self.request.watch = self.watch
        self.answer: Response | None = None
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

    def texts(self) -> list[str]:
        assert self.answer is not None
        assert self.answer.status == 200
        return [message["message_body"] for message in json_of(self.answer)["messages"]]


async def wait_in(api: Api, nursery: trio.Nursery, queue: str, **members: Any) -> Consumer:
    consumer = Consumer(api, queue, **members)
    nursery.start_soon(consumer.run)
    await all_idle()
    assert consumer.answer is None
    return consumer


@pytest.mark.parametrize("peek", PEEK)
async def test_only_the_queue_that_is_sent_to_wakes(api: Api, peek: bool):
    """S9: a send to queue A does not wake who waits on queue B."""
    async with trio.open_nursery() as nursery:
        mine = await wait_in(api, nursery, "mine", peek=peek)
        other = await wait_in(api, nursery, "other", peek=peek)
        await api.send("hello", queue="mine")
        await all_idle()
        assert mine.texts() == ["hello"]
        assert other.answer is None
        other.leave()


async def test_one_message_wakes_one_receiver_and_any_number_of_peeks(api: Api):
    async with trio.open_nursery() as nursery:
        first, second = [await wait_in(api, nursery, "q") for _ in range(2)]
        assert api.broker.known.waiting("q") == 2
        await api.send("hello")
        await all_idle()
        assert first.texts() == ["hello"]
        assert second.answer is None
        await api.send("again", visibility_timeout=0)
        await all_idle()
        assert second.texts() == ["again"]


async def test_a_message_made_visible_wakes(api: Api):
    """S5, S9: change_visibility with a negative timeout."""
    await api.send("hello")
    (message,) = await api.receive()
    async with trio.open_nursery() as nursery:
        consumer = await wait_in(api, nursery, "q", visibility_timeout=5)
        handles = {"receipt_handles": [message["receipt_handle"]]}
        await api.ok("change_visibility", handles | {"visibility_timeout": -1})
        await all_idle()
        assert consumer.texts() == ["hello"]


async def test_a_wait_ends_after_its_seconds(api: Api, mock_clock: trio.testing.MockClock):
    """S4: 20 seconds unless it says otherwise; then no messages."""
    async with trio.open_nursery() as nursery:
        short = await wait_in(api, nursery, "q", wait_time_seconds=3)
        usual = await wait_in(api, nursery, "q")
        mock_clock.jump(3)
        await all_idle()
        assert short.answer is not None
        assert short.answer.body == b'{"messages":[]}'
        mock_clock.jump(16.999)
        await all_idle()
        assert usual.answer is None
        mock_clock.jump(0.001)
    assert usual.texts() == []


@pytest.mark.parametrize("peek", PEEK)
async def test_a_client_that_leaves_stops_waiting_at_once(api: Api, peek: bool):
    """S9: and what comes later is still there."""
    async with trio.open_nursery() as nursery:
        consumer = await wait_in(api, nursery, "q", peek=peek)
        consumer.leave()
    assert api.broker.known.waiting("q") == 0
    assert consumer.answer is None
    await api.send("hello")
    assert await api.length() == (1, 0)


async def test_an_answer_nobody_read_gives_its_messages_back(api: Api):
    await api.send("hello")
    consumer = Consumer(api, "q")
    await consumer.run()
    assert consumer.answer is not None
    assert consumer.answer.on_unsent is not None
    assert await api.length() == (0, 1)
    consumer.answer.on_unsent()
    assert (await api.receive())[0]["approximate_receive_count"] == 1


async def test_poison_does_not_wake(api: Api):
    """S4: a message received too often is dealt with, and the wait goes on."""
    await api.send("poison")
    (message,) = await api.receive()
    async with trio.open_nursery() as nursery:
        dead = {"dead_letter_queue_name": "dead"}
        consumer = await wait_in(api, nursery, "q", max_receives=1, **dead)
        handles = {"receipt_handles": [message["receipt_handle"]]}
        await api.ok("change_visibility", handles | {"visibility_timeout": -1})
        await all_idle()
        assert consumer.answer is None
        assert await api.length("dead") == (1, 0)
        await api.send("good")
    assert consumer.texts() == ["good"]
