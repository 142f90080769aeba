"""Waits for withdrawn messages: whose they may be, how many there are, and how they end. Each process begins at T0."""

from collections.abc import AsyncIterator

import pytest
import trio

from forq_trio import Broker, Forbidden, Overloaded, Stopping, open_broker
from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.budget import Budget
from forq_trio.model.workers.withdrawn import WithdrawnMessage, WithdrawnMessages
from support.actors import T0, TrioClock, all_idle
from support.forq_api import SetClock

MINE = Key("t", "m*")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker("memory:", clock=TrioClock()) as broker:
        yield broker


async def withdraw(broker: Broker, queue: str) -> str:
    """Have a message removed while somebody has it; its id."""
    sent = await broker.produce(queue, "x")
    await broker.receive(queue, wait_ms=0)
    await broker.cancel(queue, sent.id, running=True)
    return sent.id


class Waiting:
    """Somebody who waits; after: T0 of the server before, or what it is given."""

    def __init__(self, nursery: trio.Nursery, broker: Broker, *queues: str, after: int = T0) -> None:
        self.answer: WithdrawnMessages | None = None
        nursery.start_soon(self._wait, broker, queues, after)

    async def _wait(self, broker: Broker, queues: tuple[str, ...], after: int) -> None:
        self.answer = await broker.withdrawn(queues, after)


async def test_a_key_hears_of_its_queues_only(broker, mock_clock) -> None:
    with pytest.raises(Forbidden):
        await broker.withdrawn(["q", "mine"], T0, wait_ms=0, key=MINE)
    assert (await broker.withdrawn(["mine"], T0, wait_ms=0, key=MINE)).messages == []


async def test_only_so_many_wait(broker, nursery, mock_clock) -> None:
    broker.known_workers.polls = Budget(1)
    Waiting(nursery, broker, "q")
    await all_idle()
    with pytest.raises(Overloaded):
        await broker.withdrawn(["q"], T0)
    assert (await broker.withdrawn(["q"], T0, wait_ms=0)).messages == []
    mock_clock.jump(30)
    await all_idle()
    assert broker.known_workers.polls.used == 0


async def test_a_broker_that_ends_ends_the_wait(mock_clock) -> None:
    ended = []

    async def wait(broker) -> None:
        with pytest.raises(Stopping):
            await broker.withdrawn(["q"], T0)
        ended.append(True)

    async with trio.open_nursery() as nursery, open_broker("memory:", clock=TrioClock()) as broker:
        nursery.start_soon(wait, broker)
        await all_idle()
    assert ended == [True]


async def test_what_was_told_before_it_began_may_be_any(broker, mock_clock) -> None:
    answer = await broker.withdrawn(["q"], T0 - 2)
    assert answer == WithdrawnMessages([WithdrawnMessage("q", None, None)], T0 - 1)
    assert (await broker.withdrawn(["q"], answer.position, wait_ms=0)).messages == []


async def test_however_many_of_another_queue_are_withdrawn_one_of_this_queue_is_named(
    broker, nursery, monkeypatch, mock_clock
) -> None:
    monkeypatch.setattr(limits, "WITHDRAWALS_KEPT_MAX", 4)
    waiting, other = Waiting(nursery, broker, "q", "p"), Waiting(nursery, broker, "p")
    await all_idle()
    for _ in range(9):
        await withdraw(broker, "r")
    await all_idle()
    assert waiting.answer is None
    named = await withdraw(broker, "q")
    await all_idle()
    assert waiting.answer is not None
    assert waiting.answer.messages == [WithdrawnMessage("q", named, "cancelled")]
    assert other.answer is None
    nursery.cancel_scope.cancel()


async def test_only_those_who_wait_for_its_queue_are_woken(broker, nursery, monkeypatch, mock_clock) -> None:
    asked: list[set[str]] = []
    ask = broker._withdrawn_since
    monkeypatch.setattr(
        broker, "_withdrawn_since", lambda after, queues: asked.append(queues) or ask(after, queues)
    )
    for queues in (["p", "q"], ["q", "p"], ["q", "s"], ["s"]):
        Waiting(nursery, broker, *queues)
    await all_idle()
    asked.clear()
    await withdraw(broker, "r")
    await all_idle()
    assert asked == []
    await withdraw(broker, "p")
    await all_idle()
    assert asked == [{"p", "q"}] * 2
    nursery.cancel_scope.cancel()


async def test_a_wait_that_ends_with_nothing_goes_on_later(broker, nursery, mock_clock) -> None:
    waiting = Waiting(nursery, broker, "q")
    await all_idle()
    mock_clock.jump(20)
    await withdraw(broker, "r")
    mock_clock.jump(10)
    await all_idle()
    assert waiting.answer == WithdrawnMessages([], T0 + 20_000)


async def test_a_clock_that_is_set_back_makes_nobody_miss_any() -> None:
    clock = SetClock()
    async with open_broker("memory:", clock=clock) as broker:
        clock.ms -= 3_600_000
        after = clock.ms - 1
        assert await broker.withdrawn(["q"], after, wait_ms=0) == WithdrawnMessages([], after)
        named = await withdraw(broker, "q")
        answer = await broker.withdrawn(["q"], after)
        assert [each.message_id for each in answer.messages] == [named]
