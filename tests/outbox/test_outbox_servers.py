"""forq.send beside servers on the same database: waiting consumers are woken, and a server may be killed."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from forq_trio import BlockingBroker, ForqClient, QueueNotFound, open_blocking_broker, outbox
from forq_trio.model import limits
from support.real_server import SECRET, real_server

MESSAGES = 10_000


@pytest.fixture
def broker(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingBroker]:
    """One that looks once an hour, beside what it hears."""
    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", 3_600.0)
    with open_blocking_broker(database) as broker:
        yield broker


def is_known(broker: BlockingBroker, queue: str) -> bool:
    """A queue that nobody has sent to is known while somebody waits."""
    try:
        return broker.queue_stats(queue).waiting > 0
    except QueueNotFound:
        return False


def receive_beside(broker: BlockingBroker, queue: str, got: list[str]) -> threading.Thread:
    """A consumer that waits, parked when this returns; what it receives is added to `got`."""

    def receive() -> None:
        got.extend(each.content for each in broker.receive(queue, wait_ms=30_000))

    thread = threading.Thread(target=receive)
    thread.start()
    while not is_known(broker, queue):
        broker.healthcheck()
    return thread


def test_a_waiting_consumer_is_woken_by_the_commit(broker, database):
    got: list[str] = []
    consumer = receive_beside(broker, "q", got)
    with psycopg.connect(database) as shop:
        outbox.send(shop, "other", "for nobody here")
        outbox.send(shop, "q", "x")
    consumer.join()
    assert got == ["x"]


def test_what_was_sent_before_somebody_waited_and_is_committed_later_wakes_him(broker, database):
    """Its transaction had nobody to notify."""
    got: list[str] = []
    with psycopg.connect(database) as shop:
        outbox.send(shop, "q", "x")
        consumer = receive_beside(broker, "q", got)
    consumer.join()
    assert got == ["x"]


def test_a_receive_right_behind_the_commit_finds_the_message(broker, database):
    with psycopg.connect(database) as shop:
        outbox.send(shop, "q", "x")
    assert [each.content for each in broker.receive("q", wait_ms=0)] == ["x"]


def test_a_consumer_gets_what_nobody_announced_with_the_next_look(database):
    with open_blocking_broker(database) as broker:
        got: list[str] = []
        consumer = receive_beside(broker, "q", got)
        with psycopg.connect(database) as shop:
            shop.execute("INSERT INTO forq.sent (queue, message) VALUES ('q', '{\"content\": \"x\"}')")
        consumer.join()
    assert got == ["x"]


@pytest.mark.tier2
@pytest.mark.process
def test_a_server_is_killed_while_it_moves_and_another_goes_on(database):
    with real_server(database) as first, real_server(database) as second, psycopg.connect(database) as shop:
        shop.execute("SELECT forq.send('q', n::text) FROM generate_series(1, %s) n", (MESSAGES,))
        shop.commit()
        shop.autocommit = True
        while shop.execute("SELECT count(*) FROM forq.sent").fetchone() == (MESSAGES,):
            pass
        first.process.kill()
        got: list[int] = []
        with ForqClient(second.url, SECRET) as client:
            while len(got) < MESSAGES:
                deliveries = client.receive("q", max_messages=100, wait_ms=30_000)
                assert deliveries, f"only {len(got)} of {MESSAGES} came"
                client.ack("q", [each.receipt for each in deliveries])
                got += [int(each.content) for each in deliveries]
            assert client.receive("q", wait_ms=0) == []
        assert got == [*range(1, MESSAGES + 1)]
        assert second.stop() == 0
