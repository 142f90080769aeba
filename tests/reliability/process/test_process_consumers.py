"""A pipeline whose server is killed at random moments: every message in exactly one lease, whatever was interrupted.

The client does what a Spark driver does: it asks for the next number and acknowledges the one before, stores what a
lease has under its number, and after a failure asks for the same again. What it read of a lease must never change.
"""

import random
import threading
from time import monotonic

import pytest

from forq_trio import ForqUnreachable, NewMessage
from forq_trio.client.sync import ForqClient
from forq_trio.model import limits
from support.effort import count, many_trials, soak_seconds
from support.real_server import SECRET, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]

MESSAGES = 2_000
AT_ONCE = 1_000
LEASE_MESSAGES = 900


class Pipeline:
    """What the client knows. sent: contents that were answered. sink: what each lease has, by number, and its ids."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.sent: set[str] = set()
        self.sink: dict[int, list[tuple[str, str]]] = {}
        self.number = 1
        self.interrupted = 0

    def send(self, client: ForqClient, count: int) -> None:
        start = len(self.asked)
        contents = [f"{number} {'x' * 200}" for number in range(start, start + count)]
        self.asked |= set(contents)
        client.produce_many("orders", [NewMessage(content) for content in contents])
        self.sent |= set(contents)

    def run(self, client: ForqClient) -> None:
        """Read leases until nothing is left."""
        generation = client.open_consumer("orders", "archive").generation
        while self.step(client, generation):
            pass

    def step(self, client: ForqClient, generation: int) -> bool:
        """Read one lease, or make sure that there is none and all are acknowledged: False then."""
        done = self.number - 1
        lease = client.lease(
            "orders", "archive", generation, self.number, acknowledge=done, max_messages=LEASE_MESSAGES
        )
        assert lease.acknowledged == done
        if not lease.messages:
            return False
        lines: list[tuple[str, str]] = []
        page: int | None = 0
        while page is not None:
            got = client.lease_page("orders", "archive", self.number, page, 3)
            lines += [(message.id, message.content) for message in got.messages]
            page = got.next
        assert len(lines) == lease.messages
        assert self.sink.setdefault(self.number, lines) == lines
        again = client.lease_page("orders", "archive", max(done, 1), 0, limits.CONSUMER_READ_PAGES_MAX)
        assert [(each.id, each.content) for each in again.messages] == self.sink[max(done, 1)]
        self.number += 1
        return True

    def check(self, client: ForqClient) -> None:
        lines = [line for lease in self.sink.values() for line in lease]
        contents = [content for _, content in lines]
        assert len({message_id for message_id, _ in lines}) == len(lines) == len(set(contents))
        assert self.sent <= set(contents) <= self.asked
        stats = client.queue_stats("orders")
        assert (stats.total, stats.bytes) == (0, 0)
        info = client.consumer("orders", "archive")
        assert (info.open_messages, info.acknowledged) == (0, self.number - 1)


def killed_round(database, pipeline: Pipeline, rng: random.Random) -> None:
    """Run the pipeline on a server that is killed after a random time."""
    with real_server(database) as server, ForqClient(server.url, SECRET, retry_seconds=0) as client:
        killer = threading.Timer(rng.uniform(0.02, 0.6), server.process.kill)
        killer.start()
        try:
            while True:
                pipeline.send(client, AT_ONCE)
                pipeline.run(client)
        except ForqUnreachable:
            pipeline.interrupted += 1
        finally:
            killer.join()
        server.process.wait()


def killed_again_and_again(place, rng: random.Random, rounds: int, seconds: float = 0.0) -> Pipeline:
    pipeline = Pipeline()
    with real_server(place) as server, ForqClient(server.url, SECRET) as client:
        for _ in range(MESSAGES // AT_ONCE):
            pipeline.send(client, AT_ONCE)
        server.process.kill()
        server.process.wait()
    end = monotonic() + seconds
    done = 0
    while done < rounds or monotonic() < end:
        killed_round(place, pipeline, rng)
        done += 1
    with real_server(place) as server, ForqClient(server.url, SECRET) as client:
        pipeline.run(client)
        pipeline.check(client)
    print(f"{done} kills: {len(pipeline.sent)} sends answered, {len(pipeline.sink)} leases")
    return pipeline


@many_trials
def test_killed_at_random_moments_each_message_is_in_one_lease(place, rng) -> None:
    rounds = 2 * count("kills") - 1
    assert killed_again_and_again(place, rng, rounds).interrupted == rounds


@pytest.mark.soak
def test_killed_for_long_each_message_is_in_one_lease(place, rng) -> None:
    assert killed_again_and_again(place, rng, 3, soak_seconds()).interrupted >= 3
