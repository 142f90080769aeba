"""Many at once on one queue. Across processes: test_delayed_processes."""

from collections import Counter
from functools import partial

import trio

from forq_trio.delayed import Scheduled
from support.effort import count

from .letters import Letter, after


async def all_at_once(number: int, call) -> list:
    """The results of so many calls that begin together."""
    results: list = []

    async def run(index: int) -> None:
        results.append(await call(index))

    async with trio.open_nursery() as nursery:
        for index in range(number):
            nursery.start_soon(run, index)
    return results


async def test_d41_ten_offers_of_one_key_create_once(queue) -> None:
    found = await all_at_once(10, lambda n: queue.offer_or_update("k", Letter("anna", n), after(9)))
    assert Counter(found) == {"created": 1, "updated": 9}


async def test_d41_ten_that_must_not_exist_create_once(queue) -> None:
    found = await all_at_once(10, lambda n: queue.offer_if_not_exists("k", Letter("anna", n), after(9)))
    assert Counter(found) == {"created": 1, "ignored": 9}


async def test_d41_ten_consumers_get_each_of_fifty_once(queue) -> None:
    await queue.offer_batch([Scheduled(f"{n}", Letter("anna", n)) for n in range(50)])

    async def consume(_: int) -> list[str]:
        got = []
        while (envelope := await queue.try_poll()) is not None:
            got.append(envelope.message_id)
            await envelope.acknowledge()
        return got

    got = [key for keys in await all_at_once(10, consume) for key in keys]
    assert sorted(got, key=int) == [f"{n}" for n in range(50)]


async def test_d41_a_batch_beside_single_offers_of_its_keys(queue) -> None:
    batch = [Scheduled(f"{n}", Letter("batch"), after(9)) for n in range(20)]

    async def offer(index: int) -> list:
        if index == 10:
            return [each.outcome for each in await queue.offer_batch(batch)]
        return [await queue.offer_or_update(f"{index}", Letter("single"), after(9))]

    found = Counter(outcome for some in await all_at_once(11, offer) for outcome in some)
    assert found == {"created": 20, "updated": 10}


async def test_d41_a_hundred_updates_by_ten(queue) -> None:
    await queue.offer_or_update("k", Letter("anna", 0), after(9))

    async def update(index: int) -> list:
        return [await queue.offer_or_update("k", Letter("anna", index * 10 + n), after(9)) for n in range(10)]

    found = Counter(outcome for some in await all_at_once(10, update) for outcome in some)
    assert found.total() == 100
    assert set(found) <= {"updated", "ignored"}


async def test_d41_four_producers_of_the_same_keys_and_four_consumers(queue, face) -> None:
    """Due times are ahead, so that no key is acknowledged before each producer has offered it."""
    offered = await all_at_once(4, lambda _: offer_all(queue))
    assert Counter(outcome for some in offered for outcome in some) == {"created": 200, "ignored": 600}
    await face.advance(1_000)
    got: list[str] = []

    async def consume(_: int) -> None:
        while (envelope := await queue.try_poll()) is not None:
            got.append(envelope.message_id)
            await envelope.acknowledge()

    await all_at_once(4, consume)
    assert sorted(got, key=int) == [f"{n}" for n in range(200)]
    assert await queue.drop_all_messages(queue.name) == 0


async def offer_all(queue) -> list:
    return [await queue.offer_if_not_exists(f"{n}", Letter("anna", n), after(1)) for n in range(200)]


async def test_d09_updates_beside_acks_of_their_keys(queue) -> None:
    found: Counter = Counter()
    rounds = count("offer_races")
    for number in range(rounds):
        await queue.offer_or_update("k", Letter("anna", number))
        envelope = await queue.try_poll()
        assert envelope is not None
        async with trio.open_nursery() as nursery:
            calls = [envelope.acknowledge, partial(update, found, queue, number + 1)]
            for call in calls if number % 2 else calls[::-1]:
                nursery.start_soon(call)
        left = await queue.try_poll()
        assert left is not None
        assert left.payload == Letter("bela", number + 1)
        await left.acknowledge()
        assert not await queue.contains_message("k")
    assert found.total() == rounds
    assert set(found) <= {"created", "updated"}


async def update(found: Counter, queue, number: int) -> None:
    """The clock of waiting does not move here: an offer that waits for a time would never end."""
    found[await queue.offer_or_update("k", Letter("bela", number))] += 1
