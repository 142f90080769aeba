"""Receivers that wait for messages of a queue that is bound to a table."""

import trio
import trio.testing

from forq_trio.model.errors import Overloaded
from forq_trio.model.holders import HOLDER, OWNER, Holder, HolderKind
from forq_trio.system import open_broker
from pgq.conftest import NUMBERS, until_awaited
from support.processes import WAIT_SECONDS_MAX

WAIT_MS = 30_000
STOP_SECONDS_MAX = 25.0
"""Before a receive of WAIT_MS ends by itself."""


async def test_a_waiting_receiver_is_woken_by_either_side(only_told, broker, queue, table, theirs) -> None:
    for send in (
        lambda: broker.produce(queue, "{}"),
        lambda: trio.to_thread.run_sync(theirs.publish, {}, {}),
    ):
        found = []

        async def receive(found=found) -> None:
            with trio.fail_after(WAIT_SECONDS_MAX):
                found += await broker.receive(queue, wait_ms=WAIT_MS)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await until_awaited(theirs.connection, table)
            await send()
        await broker.ack(queue, found)


async def test_each_message_wakes_one_receiver(only_told, broker, queue, table, theirs) -> None:
    found: list[str] = []

    async def receive() -> None:
        with trio.fail_after(WAIT_SECONDS_MAX):
            found.extend(each.id for each in await broker.receive(queue, wait_ms=WAIT_MS))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(receive)
        await until_awaited(theirs.connection, table)
        ids = [theirs.publish({}, {}) for _ in range(8)]
    assert sorted(found) == sorted(map(str, ids))


async def test_a_receiver_that_leaves_takes_nothing(broker, queue, rows) -> None:
    with trio.move_on_after(0.05):
        await broker.receive(queue, wait_ms=WAIT_MS)
    rows.add({})
    (delivery,) = await broker.receive(queue, wait_ms=0)
    assert delivery.attempts == 1
    broker.undeliver(queue, [delivery.receipt])
    with trio.fail_after(WAIT_SECONDS_MAX):
        (again,) = await broker.receive(queue, wait_ms=WAIT_MS)
    assert again.attempts == 1


async def test_a_token_waits_with_two_thirds_of_the_receivers_and_others_find_a_place(broker, queue) -> None:
    """As on queues of the server's own: whatever it waits for, it cannot use up all places."""
    parked = broker._writer.budgets["parked"]
    parked.size = 12

    async def wait(holder: Holder, outcomes: list[str]) -> None:
        HOLDER.set(holder)
        outcomes.append("waits")
        try:
            await broker.receive(queue, wait_ms=30_000)
        except Overloaded:
            outcomes[-1] = "refused"

    counts = []
    async with trio.open_nursery() as nursery:
        for holder, callers in ((Holder(HolderKind.TOKEN, "greedy"), 12), (OWNER, 4)):
            outcomes: list[str] = []
            for _ in range(callers):
                nursery.start_soon(wait, holder, outcomes)
                await trio.testing.wait_all_tasks_blocked()
            counts.append(outcomes.count("waits"))
        nursery.cancel_scope.cancel()
    assert counts == [8, 4]
    assert parked.refused == {"token": 4}
    assert parked.used == 0


async def test_waiting_receivers_are_answered_when_the_server_stops(pgq_url, table) -> None:
    async with open_broker(pgq_url) as broker:
        queue = f"bound{next(NUMBERS)}"
        await broker.bind(queue, table)
        async with trio.open_nursery() as nursery:
            found = []

            async def receive() -> None:
                found.append(await broker.receive(queue, wait_ms=WAIT_MS))

            nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked(0.05)
            broker._writer.drain_receivers()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_SECONDS_MAX
    assert found == [[]]
