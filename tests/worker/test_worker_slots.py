"""Slots of one queue, and those that queues share by weight."""

import trio
import trio.testing

from forq_trio.worker.slots import SharedSlots, Slots


async def test_as_many_are_taken_as_are_free() -> None:
    slots = Slots(5)
    assert await slots.take(3) == 3
    assert await slots.take(3) == 2
    with trio.move_on_after(0):
        await slots.take(1)
    assert slots.busy == 5


async def test_who_waits_goes_on_when_one_is_given_back() -> None:
    slots = Slots(1)
    await slots.take(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(slots.take, 1)
        await trio.testing.wait_all_tasks_blocked()
        slots.release(1)
    assert slots.busy == 1


async def busy_over_time(weights: list[float], rounds: int, most: int) -> list[list[int]]:
    """How many slots each queue has after each round, while all want more. At first all go to who came first."""
    shared = SharedSlots(most)
    queues = [Slots(1_000, shared, weight) for weight in weights]
    held: list[Slots] = []
    seen = []

    async def want(slots: Slots) -> None:
        while True:
            for _ in range(await slots.take(1)):
                held.append(slots)

    async with trio.open_nursery() as nursery:
        for slots in queues:
            nursery.start_soon(want, slots)
        for _ in range(rounds):
            await trio.testing.wait_all_tasks_blocked()
            seen.append([slots.busy for slots in queues])
            held.pop(0).release(1)
        nursery.cancel_scope.cancel()
    return seen


async def test_slots_are_shared_by_weight() -> None:
    for low, high in (await busy_over_time([1, 3], 100, 8))[10:]:
        assert low + high == 8
        assert 1 <= low <= 3


async def test_equal_weights_get_equal_shares() -> None:
    for busy in (await busy_over_time([1, 1, 1], 100, 5))[10:]:
        assert sum(busy) == 5
        assert max(busy) - min(busy) <= 1


async def test_a_queue_alone_may_use_all() -> None:
    shared = SharedSlots(6)
    one, other = Slots(10, shared), Slots(10, shared)
    assert await one.take(10) == 6
    one.release(6)
    assert await other.take(10) == 6
