"""A load that touches everything that metrics tell of, so that no panel of a dashboard is empty."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from forq_trio import ForqClient, NewMessage, NewSchedule
from forq_trio.model.errors import QueueFull, TooManyWrongKeys, WrongKey
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment

QUEUE = "orders"
"""The queue in which all happens that can happen in one."""
FOR_WORKER = {"for": "worker"}
NOT_FOR_WORKER = {"for": {"not": "worker", "orAbsent": True}}
WORKER = f"""
import sys
from forq_trio.worker import Worker

app = Worker(sys.argv[1])

@app.on("{QUEUE}", concurrency=4, where={FOR_WORKER})
async def handle(text: str) -> None:
    pass

app.run()
"""


@contextmanager
def running_worker(url: str) -> Iterator[None]:
    """A worker in a process of its own, for the messages that are for workers."""
    command = [sys.executable, "-c", WORKER, url]
    with subprocess.Popen(command, env=environment()) as process:
        try:
            yield
            process.terminate()
            assert process.wait(WAIT_SECONDS_MAX) == 0
        finally:
            process.kill()


class WatchedLoad:
    """A load for one server: `prepare` makes its queues, then each `run` does everything once more."""

    def __init__(self, url: str) -> None:
        self._client = ForqClient(url, SECRET, retry_seconds=0)
        self._stranger = ForqClient(url, "wrong-" + SECRET, retry_seconds=0)
        self._round = 0

    def prepare(self) -> None:
        client = self._client
        client.configure(QUEUE, group_in_flight_max=1)
        client.configure("full", max_messages=1)
        client.produce("paused", "waits")
        client.pause("paused")
        client.save_schedule("tick", NewSchedule(queue="ticks", content="tick", every="1s"))
        client.open_consumer(QUEUE, "sink")
        for _ in range(3):  # 12 MiB, from which a checkpoint follows
            client.produce_many("large", [NewMessage("x" * 200_000) for _ in range(20)])
            client.purge("large")

    def close(self) -> None:
        self._client.close()
        self._stranger.close()

    def run(self) -> None:
        """One round. It ends with a long poll that finds nothing, for a second."""
        self._round += 1
        self._settle_in_all_ways()
        self._fill_queues()
        self._offer()
        self._client.produce("paused", "waits")
        self._client.produce_many("ticks", [NewMessage("x")])
        for delivery in self._client.receive("ticks", max_messages=100, wait_ms=0):
            self._client.ack("ticks", delivery)
        with suppress(WrongKey, TooManyWrongKeys):
            self._stranger.produce(QUEUE, "refused")
        self._client.receive("empty", wait_ms=1_000)

    def _settle_in_all_ways(self) -> None:
        """Acked, nacked, dead, redriven, expired, delayed, held, and a lease that runs out."""
        client = self._client
        for _ in range(6):
            client.produce(QUEUE, "here")
        for _ in range(2):
            client.produce(QUEUE, "one at a time", group="g")
        client.produce(QUEUE, "later", delay_ms=3_600_000)
        client.produce(QUEUE, "for a worker", attributes=FOR_WORKER, priority=1)
        client.produce(QUEUE, "too late", ttl_ms=1, delay_ms=1)
        found = client.receive(QUEUE, max_messages=8, wait_ms=0, where=NOT_FOR_WORKER)
        for number, delivery in enumerate(found):
            if number % 4 == 0:
                client.nack(QUEUE, delivery, reason="not now", delay_ms=0)
            elif number % 4 == 1:
                client.nack(QUEUE, delivery, reason="never", final=True)
            else:
                client.ack(QUEUE, delivery)
        client.receive(QUEUE, wait_ms=0, lease_ms=1)
        dead = client.search_dead_letters(f"{QUEUE}-dlq", limit=1)
        client.redrive(f"{QUEUE}-dlq", [each.id for each in dead.messages])

    def _fill_queues(self) -> None:
        """Full queues refuse and evict."""
        client = self._client
        for _ in range(2):
            with suppress(QueueFull):
                client.produce("full", "x")
        client.produce(QUEUE, "gives its place")
        full = client.queue_stats(QUEUE).total
        client.configure(QUEUE, max_messages=full, overflow="dead_letter")
        client.produce(QUEUE, "takes a place")
        client.configure(QUEUE, max_messages=None, overflow=None)

    def _offer(self) -> None:
        """Offers under a key: created, updated and ignored."""
        client = self._client
        key = f"key-{self._round}"
        client.offer(QUEUE, key, "first", delay_ms=3_600_000)
        client.offer(QUEUE, key, "second", delay_ms=3_600_000)
        client.offer(QUEUE, key, "third", mode="createIfAbsent", delay_ms=3_600_000)
