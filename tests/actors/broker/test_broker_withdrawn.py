"""Waits for withdrawn messages: whose they may be, how many there are, and how they end."""

import pytest
import trio

from forq_trio import Forbidden, Overloaded, Stopping, open_broker
from forq_trio.model.access.types import Key
from forq_trio.model.budget import Budget
from support.actors import all_idle

MINE = Key("t", "m*")


async def test_a_key_hears_of_its_queues_only() -> None:
    async with open_broker("memory:") as broker:
        with pytest.raises(Forbidden):
            await broker.withdrawn(["q", "mine"], 0, wait_ms=0, key=MINE)
        assert (await broker.withdrawn(["mine"], 0, wait_ms=0, key=MINE)).messages == []


async def test_only_so_many_wait(mock_clock) -> None:
    async with open_broker("memory:") as broker:
        broker.known_workers.polls = Budget(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.withdrawn, ["q"], 0)
            await all_idle()
            with pytest.raises(Overloaded):
                await broker.withdrawn(["q"], 0)
            assert (await broker.withdrawn(["q"], 0, wait_ms=0)).messages == []
            mock_clock.jump(30)
        assert broker.known_workers.polls.used == 0


async def test_a_broker_that_ends_ends_the_wait(mock_clock) -> None:
    ended = []

    async def wait(broker) -> None:
        with pytest.raises(Stopping):
            await broker.withdrawn(["q"], 0)
        ended.append(True)

    async with trio.open_nursery() as nursery, open_broker("memory:") as broker:
        nursery.start_soon(wait, broker)
        await all_idle()
    assert ended == [True]
