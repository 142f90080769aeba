"""A process that is a client of a server: it runs the tasks of each line it reads, all at the same time, in threads.

A line is `Tasks`. The answer is a line with what each task came to: the outcomes of its offers, in their order, or the
keys that it consumed.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from forq_trio import ForqClient, ForqError, Offered, Offering
from support.real_server import SECRET


class Offers(msgspec.Struct, tag="offers", frozen=True):
    """Offers made one after the other, each alone."""

    queue: str
    offers: tuple[Offering, ...]


class Batch(msgspec.Struct, tag="batch", frozen=True):
    """Offers made in one commit."""

    queue: str
    offers: tuple[Offering, ...]


class Consume(msgspec.Struct, tag="consume", frozen=True):
    """Messages received one at a time and acknowledged, until none comes within `wait_ms`."""

    queue: str
    wait_ms: int


Task = Offers | Batch | Consume


class Tasks(msgspec.Struct, frozen=True):
    """What a process does at the same time."""

    tasks: tuple[Task, ...]


class Done(msgspec.Struct, frozen=True):
    """What came of each task."""

    results: tuple[tuple[str, ...], ...]


def perform(client: ForqClient, task: Task) -> tuple[str, ...]:
    match task:
        case Offers(queue, offers):
            return words([answer for each in offers for answer in client.offer_many(queue, [each])])
        case Batch(queue, offers):
            return words(client.offer_many(queue, offers))
        case Consume(queue, wait_ms):
            return consume(client, queue, wait_ms)


def words(answers: Sequence[Offered | ForqError]) -> tuple[str, ...]:
    return tuple(each.outcome if isinstance(each, Offered) else each.code for each in answers)


def consume(client: ForqClient, queue: str, wait_ms: int) -> tuple[str, ...]:
    """The keys of the messages that were acknowledged."""
    consumed = []
    while deliveries := client.receive(queue, wait_ms=wait_ms):
        for delivery in deliveries:
            client.ack(queue, delivery)
            consumed.append(delivery.key or "")
    return tuple(consumed)


def main(url: str) -> None:
    """Answer line by line until there are no more."""
    read = msgspec.json.Decoder(Tasks).decode
    with ForqClient(url, SECRET) as client, ThreadPoolExecutor(16) as pool:
        for line in sys.stdin.buffer:
            results = pool.map(partial(perform, client), read(line).tasks)
            print(msgspec.json.encode(Done(tuple(results))).decode(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
