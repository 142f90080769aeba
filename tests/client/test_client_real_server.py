"""Both clients against a real server: the small one that the other tests use must not have lied to them."""

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
import trio

from client.fake_forq import SECRET
from forq_trio.client import (
    AsyncForqClient,
    ExponentialBackOff,
    ForqApiError,
    ForqClient,
    NewMessage,
    Produced,
    QueueRules,
    QueueSettings,
    Rejected,
)
from support.real_server import RealServer, real_server

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("server") / "forq.db") as server:
        yield server


@pytest.fixture
def client(server: RealServer) -> Iterator[ForqClient]:
    with ForqClient(server.url, SECRET) as client:
        yield client


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"q-{uuid4().hex}"


def test_a_message_from_send_to_ack(client: ForqClient, queue: str):
    produced = client.produce(queue, "käse")
    (delivery,) = client.receive(queue, wait_ms=0, lease_ms=60_000)
    assert (delivery.id, delivery.sequence) == (produced.id, produced.sequence)
    assert (delivery.content, delivery.attempts) == ("käse", 1)
    assert delivery.lease_until > delivery.received_at
    (extended,) = client.extend(queue, [delivery.receipt], 120_000)
    assert extended.ok
    assert extended.lease_until is not None
    assert extended.lease_until > delivery.lease_until
    message = client.message(queue, produced.id)
    assert (message.status, message.lease_until) == ("processing", extended.lease_until)
    (acked,) = client.ack(queue, [delivery.receipt])
    assert (acked.receipt, acked.ok, acked.code, acked.lease_until) == (delivery.receipt, True, None, None)
    with pytest.raises(ForqApiError) as caught:
        client.message(queue, produced.id)
    assert (caught.value.status, caught.value.code) == (404, "not_found.message")


def test_nack_and_release(client: ForqClient, queue: str):
    client.produce(queue, "a")
    (first,) = client.receive(queue)
    assert client.nack(queue, [first.receipt], delay_ms=0, reason="no paper")[0].ok
    (second,) = client.receive(queue)
    assert second.attempts == 2
    assert client.release(queue, [second.receipt])[0].ok
    (message,) = client.peek(queue, limit=10)
    assert (message.attempts, message.status, message.last_error) == (1, "ready", "no paper")
    results = client.ack(queue, [second.receipt, "nonsense"])
    assert [(result.ok, result.code) for result in results] == [
        (False, "not_found.message"),
        (False, "bad_request.receipt.invalid"),
    ]


OPTIONS = {
    "priority": 7,
    "ttl_ms": 60_000,
    "attributes": {"tenant": "a", "käse": ""},
    "deduplication_id": "order-1",
    "deduplication_window_ms": 60_000,
    "group": "g",
    "max_attempts": 3,
    "dead_letter_queue": "",
}


def test_a_message_with_everything(client: ForqClient, queue: str):
    produced = client.produce(queue, "a", **OPTIONS)
    assert client.produce(queue, "b", **OPTIONS) == Produced(produced.id, produced.sequence, duplicate=True)
    client.produce(queue, "c", priority=6)
    (delivery,) = client.receive(queue)
    assert (delivery.content, delivery.priority, delivery.group) == ("a", 7, "g")
    assert delivery.attributes == OPTIONS["attributes"]
    assert delivery.first_received_at >= delivery.received_at
    message = client.message(queue, produced.id)
    assert {name: getattr(message, name) for name in ("max_attempts", "ttl_ms", "dead_letter_queue")} == {
        "max_attempts": 3,
        "ttl_ms": 60_000,
        "dead_letter_queue": "",
    }
    client.nack(queue, [delivery.receipt], delay_ms=60_000, reason="no paper")
    (failure,) = client.message(queue, produced.id).failures
    assert (failure.attempt, failure.reason) == (1, "no paper")
    (plain,) = client.receive(queue)
    assert (plain.content, plain.attributes, plain.group) == ("c", {}, None)


def test_messages_at_random(client: ForqClient, queue: str):
    client.produce_many(queue, [NewMessage(content) for content in "abc"])
    seen = client.peek(queue, limit=3, shuffle=True)
    assert sorted(message.content for message in seen) == ["a", "b", "c"]
    received = [client.receive(queue, shuffle=True, wait_ms=0)[0].content for _ in "abc"]
    assert sorted(received) == ["a", "b", "c"]


CHANGES = {
    "lease_ms": 90_000,
    "delay_ms": 0,
    "ttl_ms": 60_000,
    "max_attempts": 7,
    "back_off": ExponentialBackOff(1_000, 3.0, 60_000, 0.5),
    "dead_letter_queue": "failed",
    "deduplication_window_ms": 1,
    "max_messages": 2,
    "max_bytes": 1_000,
    "overflow": "drop_oldest",
    "order": "lifo",
    "group_in_flight_max": 1,
}


def test_settings(client: ForqClient, queue: str):
    virtual = client.settings(queue)
    assert virtual.settings == QueueSettings()
    assert (virtual.effective.lease_ms, virtual.effective.dead_letter_queue) == (300_000, f"{queue}-dlq")
    changed = client.configure(queue, **CHANGES)
    assert changed == client.settings(queue)
    assert changed.settings == QueueSettings(**CHANGES)
    assert changed.effective == QueueRules(**CHANGES, paused=False)
    changed = client.configure(queue, lease_ms=None, back_off=(5, 7), overflow="reject")
    assert (changed.effective.lease_ms, changed.effective.back_off) == (300_000, (5, 7))
    client.produce_many(queue, [NewMessage("a"), NewMessage("b")])
    with ForqClient(client._url, SECRET, retry_seconds=0) as hasty, pytest.raises(ForqApiError) as caught:
        hasty.produce(queue, "c")
    assert (caught.value.status, caught.value.code) == (503, "forq.queue_full")
    client.reset_settings(queue)
    assert client.settings(queue) == virtual


def test_a_setting_that_is_not_valid(client: ForqClient, queue: str):
    with pytest.raises(ForqApiError) as caught:
        client.configure(queue, lease_ms=-1)
    assert (caught.value.status, caught.value.code) == (400, "bad_request.settings.leaseMs")
    assert caught.value.detail is not None
    assert "leaseMs" in caught.value.detail


def test_a_queue_as_a_whole(client: ForqClient, queue: str):
    client.produce(queue, "a")
    client.pause(queue)
    assert client.receive(queue, wait_ms=0) == []
    assert {each.queue: each for each in client.queues()}[queue].paused
    assert client.queue_stats(queue).paused
    client.resume(queue)
    assert len(client.receive(queue, wait_ms=0)) == 1
    with pytest.raises(ForqApiError) as caught:
        client.delete_queue(queue)
    assert (caught.value.status, caught.value.code) == (409, "conflict.queue_not_empty")
    assert client.purge(queue) == 1
    client.delete_queue(queue)
    assert queue not in {each.queue for each in client.queues()}


def test_a_batch_is_judged_message_by_message(client: ForqClient, queue: str):
    late = time.time_ns() // 1_000_000 + 3_600_000
    results = client.produce_many(queue, [NewMessage("a"), NewMessage("b", 1), NewMessage("c", late)])
    assert [type(result) for result in results] == [Produced, Rejected, Produced]
    stats = client.queue_stats(queue)
    assert (stats.ready, stats.delayed, stats.processing, stats.is_dlq) == (1, 1, 0, False)
    assert stats.oldest_ready_age_ms is not None
    listed = {each.queue: each for each in client.queues()}
    assert (listed[queue].ready, listed[queue].delayed) == (1, 1)


def test_refusals(client: ForqClient, server: RealServer):
    for queue, code in (
        ("a-dlq", "bad_request.queue.produce_to_dlq"),
        ("a b", "bad_request.queue.invalid_name"),
    ):
        with pytest.raises(ForqApiError) as caught:
            client.produce(queue, "x")
        assert (caught.value.status, caught.value.code) == (400, code)
    with pytest.raises(ForqApiError) as caught:
        client.receive("a", max_messages=101)
    assert caught.value.code == "bad_request.max.out_of_range"
    with ForqClient(server.url, "wrong") as stranger, pytest.raises(ForqApiError) as caught:
        stranger.queues()
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")


def test_health(client: ForqClient):
    assert client.healthcheck() is None


async def test_a_waiting_receiver_gets_the_message_as_it_comes(server: RealServer, queue: str):
    """F3: the long poll."""
    async with AsyncForqClient(server.url, SECRET) as client, trio.open_nursery() as nursery:

        async def receive() -> None:
            (delivery,) = await client.receive(queue)
            assert delivery.content == "a"
            await client.ack(queue, [delivery.receipt])

        nursery.start_soon(receive)
        while (await client.queue_stats(queue)).waiting == 0:
            await trio.lowlevel.checkpoint()
        await client.produce(queue, "a")


async def test_the_message_of_a_cancelled_receive_goes_to_another(server: RealServer, queue: str):
    async with AsyncForqClient(server.url, SECRET) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.receive, queue)
            while (await client.queue_stats(queue)).waiting == 0:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        while (await client.queue_stats(queue)).waiting == 1:
            await trio.lowlevel.checkpoint()
        await client.produce(queue, "a")
        (delivery,) = await client.receive(queue, wait_ms=0)
        assert delivery.attempts == 1
