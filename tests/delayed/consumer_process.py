"""A process of test_delayed_processes: takes part in the case that each line of its input names, and prints a result.

A case gets the queue of that name, which is new for it. Run with FORQ_URL and FORQ_AUTH_SECRET.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable

import trio

from forq_trio import AsyncForqClient
from forq_trio.delayed import DelayedQueue, Scheduled

Queue = DelayedQueue[str]
ME = str(os.getpid())


async def same_key(queue: Queue) -> list[str]:
    """Ten offers of one key in each process, each with another payload."""
    return [await queue.offer_or_update("k", f"{ME} {n}") for n in range(10)]


async def if_not_exists(queue: Queue) -> list[str]:
    return [await queue.offer_if_not_exists("k", ME) for _ in range(10)]


async def consume(queue: Queue) -> list[str]:
    """Takes until the queue is empty; the keys."""
    got: list[str] = []

    async def take() -> None:
        while (envelope := await queue.try_poll()) is not None:
            got.append(envelope.message_id)
            await envelope.acknowledge()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)
    return got


async def batch_and_single(queue: Queue) -> list[str]:
    batch = await queue.offer_batch([Scheduled(f"{n}", ME) for n in range(20)])
    single = [await queue.offer_or_update(f"{n}", f"{ME} single") for n in range(5, 15)]
    return [str(each.outcome) for each in batch] + list(single)


async def produce(queue: Queue) -> list[str]:
    return [await queue.offer_if_not_exists(f"{n}", ME) for n in range(200)]


async def produce_and_consume(queue: Queue) -> list[str]:
    """Offers and takes beside each other; the keys that were taken."""
    taken: list[str] = []
    produced = trio.Event()

    async def producer() -> None:
        await produce(queue)
        produced.set()

    async def consumer() -> None:
        while True:
            ended = produced.is_set()
            envelope = await queue.try_poll()
            if envelope is not None:
                taken.append(envelope.message_id)
                await envelope.acknowledge()
            elif ended:
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(producer)
        nursery.start_soon(consumer)
    return taken


CASES: dict[str, Callable[[Queue], Awaitable[list[str]]]] = {
    each.__name__: each
    for each in (same_key, if_not_exists, consume, batch_and_single, produce, produce_and_consume)
}


async def main() -> None:
    async with AsyncForqClient(os.environ["FORQ_URL"], os.environ["FORQ_AUTH_SECRET"]) as client:
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            case, name = line.split()
            result = await CASES[case](DelayedQueue(client, name, str))
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    trio.run(main)
