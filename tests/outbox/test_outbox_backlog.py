"""What waits in an outbox: the relay knows how much and since when, and metrics say so."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from prometheus_client import CollectorRegistry

from forq_trio import Broker, Stopping, open_broker, outbox
from forq_trio.embedded.metrics import BrokerCollector
from forq_trio.jobs.outbox_gauges import OutboxGauges
from forq_trio.model import limits
from forq_trio.outbox import Relay
from forq_trio.outbox.backlog import Backlog
from forq_trio.worker import Worker
from forq_trio.worker.metrics import measure
from forq_trio.worker.outbox import WorkerOutbox

WAITING, SECONDS = "forq_outbox_waiting", "forq_outbox_waiting_seconds"


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_the_oldest_is_as_old_as_the_first_read_that_saw_it() -> None:
    clock = Clock()
    backlog = Backlog(clock)
    assert (backlog.waiting, backlog.oldest_seconds) == (0, 0)
    for at, position, last_id, waiting, seconds in [
        (100, 0, 0, 0, 0),
        (110, 0, 5, 5, 0),
        (120, 0, 5, 5, 10),
        (130, 0, 9, 9, 20),
        (140, 3, 9, 6, 30),
        (150, 5, 9, 4, 20),  # those up to 9 were seen at 130
        (160, 9, 9, 0, 0),
        (170, 9, 12, 3, 0),
    ]:
        clock.at = float(at)
        backlog.note(position, last_id)
        assert (backlog.waiting, backlog.oldest_seconds) == (waiting, seconds), at


def test_what_waited_in_a_database_that_was_replaced_is_forgotten() -> None:
    clock = Clock()
    backlog = Backlog(clock)
    backlog.note(0, 500)
    clock.at = 1_000.0
    backlog.note(10, 10)  # an older copy, all of which is relayed
    assert (backlog.waiting, backlog.oldest_seconds) == (0, 0)
    backlog.note(10, 11)
    clock.at = 1_003.0
    assert (backlog.waiting, backlog.oldest_seconds) == (1, 3)


def test_it_stays_small_however_long_a_relay_is_held_up() -> None:
    clock = Clock()
    backlog = Backlog(clock)
    for number in range(1, 1_000):
        clock.at += 1
        backlog.note(0, number)
    assert len(backlog._marks) == limits.OUTBOX_MARKS_MAX
    assert (backlog.waiting, backlog.oldest_seconds) == (999, 998)
    backlog.note(500, 999)
    assert backlog.oldest_seconds >= 499


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def shop(path: Path):
    with closing(sqlite3.connect(path)) as shop:
        outbox.create_table(shop)
        yield shop


class HeldUp:
    """A broker that says when it is asked, and takes nothing until it is told to."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.asked = anyio.Event()
        self.free = False

    async def outbox_position(self, name):
        return await self._broker.outbox_position(name)

    async def relay_outbox(self, name, after, messages):
        if not self.free:
            self.asked.set()
            raise Stopping
        return await self._broker.relay_outbox(name, after, messages)


async def test_a_relay_that_is_held_up_says_what_waits(shop, path) -> None:
    async with open_broker("memory:") as broker:
        source = HeldUp(broker)
        relay = Relay(path, source)
        with shop:
            for number in range(limits.OUTBOX_PAGE_MAX + 7):
                outbox.send(shop, "orders", str(number))
        with pytest.raises(Stopping):
            await relay.relay_all()
        assert relay.backlog.waiting == limits.OUTBOX_PAGE_MAX + 7
        assert relay.backlog.oldest_seconds > 0
        source.free = True
        await relay.relay_all()
        assert (relay.backlog.waiting, relay.backlog.oldest_seconds) == (0, 0)


async def test_what_is_set_aside_does_not_wait(shop, path) -> None:
    async with open_broker("memory:") as broker:
        relay = Relay(path, broker)
        with shop:
            shop.execute("INSERT INTO forq_outbox (queue, message) VALUES ('orders', 'no message')")
        await relay.relay_all()
        assert (relay.set_aside, relay.backlog.waiting, relay.backlog.oldest_seconds) == (1, 0, 0)


def test_a_broker_and_a_worker_have_the_same_gauges() -> None:
    of_broker = [(family.name, family.meaning) for family in OutboxGauges().families()]
    of_worker = WorkerOutbox("shop.db").metrics(lambda name, meaning, _: (name, meaning))
    assert [name for name, _ in of_broker] == [WAITING, SECONDS]
    assert list(of_worker) == of_broker


async def test_the_metrics_of_a_broker_have_it(shop, path) -> None:
    async with open_broker("memory:", outbox=path) as broker:
        registry = CollectorRegistry()
        registry.register(BrokerCollector(broker))
        assert registry.get_sample_value(WAITING) == 0
        assert registry.get_sample_value(SECONDS) == 0
    async with open_broker("memory:") as broker:
        registry = CollectorRegistry()
        registry.register(BrokerCollector(broker))
        assert registry.get_sample_value(WAITING) is None


async def test_the_metrics_of_a_worker_have_it(shop, path) -> None:
    async with open_broker("memory:") as broker:
        app = Worker(broker, outbox=path, presence=False)

        @app.on("orders")
        async def handle(content: str) -> None: ...

        registry = CollectorRegistry()
        measure(app, registry)
        assert registry.get_sample_value(WAITING) == 0
        with shop:
            outbox.send(shop, "orders", "x")
        assert await app.drain() == 1
        assert registry.get_sample_value(WAITING) == 0
        assert registry.get_sample_value(SECONDS) == 0
        registry = CollectorRegistry()
        measure(Worker(broker, presence=False), registry)
        assert registry.get_sample_value(WAITING) is None
