"""A process that offers and receives messages with keys until it is killed, and writes a line of each of its steps.

Run with a database, a seed, and the first version of its contents. A content is a key and a version. Versions only
grow, and each key has one producer, so the lines say what a key may have at any moment.
"""

import os
import random
import sys

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.keys.types import Mode, Offered, Offering
from forq_trio.system import open_broker

QUEUE = "q"
PRODUCERS = 3
CONSUMERS = 2
KEYS_EACH = 4
MODES: tuple[Mode, ...] = (
    "createOrUpdate",
    "createOrUpdate",
    "onceMore",
    "onceMore",
    "debounce",
    "createIfAbsent",
)


class Step(msgspec.Struct, array_like=True, frozen=True):
    """what: "offering" and "acking" before a call; "stored" and "acked" after one that did it, "refused" else."""

    what: str
    key: str
    version: int


def tell(what: str, content: str) -> None:
    """Write a step. A line is shorter than what a pipe takes at once, so a kill leaves no half of one."""
    key, version = content.split()
    os.write(1, msgspec.json.encode(Step(what, key, int(version))) + b"\n")


async def produce(broker: Broker, rng: random.Random, number: int, version: int) -> None:
    while True:
        batch = []
        for _ in range(rng.randrange(1, 5)):
            version += 1
            key, mode = f"k{number}/{rng.randrange(KEYS_EACH)}", rng.choice(MODES)
            delay_ms = rng.choice((0, 5)) if mode == "debounce" else rng.choice((None, 0, 5))
            batch.append(Offering(f"{key} {version}", mode, delay_ms=delay_ms, key=key))
        for each in batch:
            tell("offering", each.content)
        for each, offered in zip(batch, await broker.offer_many(QUEUE, batch), strict=True):
            assert isinstance(offered, Offered), offered
            if offered.outcome != "ignored":
                tell("stored", each.content)


async def consume(broker: Broker, rng: random.Random) -> None:
    while True:
        for each in await broker.receive(QUEUE, max_messages=3, lease_ms=60_000, wait_ms=1_000):
            for _ in range(rng.choice((1, 30))):
                await trio.lowlevel.checkpoint()
            if rng.random() < 0.3:
                await broker.nack(QUEUE, [each.receipt], delay_ms=0)
                continue
            tell("acking", each.content)
            (result,) = await broker.ack(QUEUE, [each.receipt])
            tell("acked" if result.ok else "refused", each.content)


async def main(path: str, seed: str, version: str) -> None:
    rng = random.Random(int(seed))
    async with (
        open_broker(f"sqlite:///{path}", durability="normal") as broker,
        trio.open_nursery() as nursery,
    ):
        for number in range(PRODUCERS):
            nursery.start_soon(produce, broker, rng, number, int(version))
        for _ in range(CONSUMERS):
            nursery.start_soon(consume, broker, rng)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
