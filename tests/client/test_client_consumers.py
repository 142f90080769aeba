"""Consumers of pipelines over HTTP, by either client: leases, pages, acknowledgements, fencing."""

import pytest

from forq_trio import (
    ConsumerFenced,
    ConsumerNotFound,
    InvalidQueueName,
    LeaseGone,
    LeaseOutOfOrder,
    NewMessage,
    OutOfRange,
)
from forq_trio.model import limits

from .conftest import Call


@pytest.fixture(scope="module")
def call(either: Call) -> Call:
    """No face leases, so both clients do."""
    return either


def send_each(call: Call, queue: str, count: int) -> list[str]:
    """Send so many messages; their contents."""
    contents = [f"käse {number}" for number in range(count)]
    call("produce_many", queue, [NewMessage(content, attributes={"k": "ö"}) for content in contents])
    return contents


def read(call: Call, queue: str, number: int) -> list[str]:
    """The contents of a lease, read in as many requests as it takes."""
    contents: list[str] = []
    page: int | None = 0
    while page is not None:
        got = call("lease_page", queue, "k", number, page, 2)
        contents += [message.content for message in got.messages]
        page = got.next
    return contents


def test_a_pipeline(call: Call, queue: str):
    opened = call("open_consumer", queue, "k")
    generation = opened.generation
    assert (opened.leased, opened.expires_at, opened.oldest_readable, opened.settling) == (0, None, 0, False)
    none = call("lease", queue, "k", generation, 1)
    assert (none.messages, none.complete, none.pages) == (0, True, 0)
    sent = send_each(call, queue, 900)
    lease = call("lease", queue, "k", generation, 1, max_messages=700)
    assert (lease.number, lease.messages, lease.complete, lease.acknowledged) == (1, 700, True, 0)
    assert lease.pages >= 4
    assert read(call, queue, 1) == read(call, queue, 1) == sent[:700]
    (first, *_) = call("lease_page", queue, "k", 1).messages
    assert (first.queue, first.attempts, first.attributes) == (queue, 1, {"k": "ö"})
    assert call("queue_stats", queue).processing == 700
    info = call("consumer", queue, "k")
    assert (info.open_messages, info.ready, info.open_bytes) == (700, 200, lease.bytes)
    assert info.expires_at == info.used_at + 86_400_000
    second = call("lease", queue, "k", generation, 2, acknowledge=1)
    assert (second.messages, second.acknowledged) == (200, 1)
    assert call("lease", queue, "k", generation, 2, acknowledge=1) == second
    assert read(call, queue, 2) == sent[700:]
    assert read(call, queue, 1) == sent[:700]
    done = call("acknowledge", queue, "k", generation, 2)
    assert (done.acknowledged, done.open_messages, done.complete, done.oldest_readable) == (2, 0, True, 1)
    assert call("queue_stats", queue).total == 0


def test_an_older_generation_is_fenced(call: Call, queue: str):
    generation = call("open_consumer", queue, "k").generation
    send_each(call, queue, 3)
    call("lease", queue, "k", generation, 1)
    assert call("open_consumer", queue, "k", idle_seconds=60).generation == generation + 1
    with pytest.raises(ConsumerFenced):
        call("lease", queue, "k", generation, 1)
    with pytest.raises(ConsumerFenced):
        call("acknowledge", queue, "k", generation, 1)
    assert call("lease", queue, "k", generation + 1, 1).messages == 3


def test_a_release(call: Call, queue: str):
    generation = call("open_consumer", queue, "k").generation
    sent = send_each(call, queue, 3)
    call("lease", queue, "k", generation, 1)
    released = call("release_consumer", queue, "k")
    assert (released.open_messages, released.ready, released.released_before) == (0, 3, 2)
    with pytest.raises(ConsumerFenced):
        call("lease", queue, "k", generation, 2)
    generation = released.generation
    for name, *arguments in (("lease_page", 1), ("lease", generation, 1), ("acknowledge", generation, 1)):
        with pytest.raises(LeaseGone):
            call(name, queue, "k", *arguments)
    call("lease", queue, "k", generation, 2)
    assert read(call, queue, 2) == sent


def test_the_order_of_numbers(call: Call, queue: str):
    generation = call("open_consumer", queue, "k").generation
    send_each(call, queue, 1)
    for name, *arguments in (("lease_page", 1), ("lease", generation, 2), ("acknowledge", generation, 1)):
        with pytest.raises(LeaseOutOfOrder):
            call(name, queue, "k", *arguments)


def test_lists_and_deletion(call: Call, queue: str):
    for name in "ba":
        generation = call("open_consumer", queue, name).generation
    assert [each.name for each in call("consumers", queue)] == ["a", "b"]
    assert {each.name for each in call("consumers") if each.queue == queue} == {"a", "b"}
    send_each(call, queue, 3)
    call("lease", queue, "a", generation, 1)
    call("delete_consumer", queue, "a")
    assert [each.name for each in call("consumers", queue)] == ["b"]
    assert call("queue_stats", queue).ready == 3
    for name, *arguments in (
        ("consumer",),
        ("delete_consumer",),
        ("release_consumer",),
        ("lease", generation, 1),
        ("acknowledge", generation, 1),
        ("lease_page", 1),
    ):
        with pytest.raises(ConsumerNotFound):
            call(name, queue, "a", *arguments)


def test_what_is_refused(call: Call, queue: str):
    for name in ("", "..", "a/b", "x" * 65):
        with pytest.raises(OutOfRange):
            call("open_consumer", queue, name)
    with pytest.raises(InvalidQueueName):
        call("open_consumer", "a b", "k")
    generation = call("open_consumer", queue, "k").generation
    for idle_seconds in (59, 31_622_401):
        with pytest.raises(OutOfRange):
            call("open_consumer", queue, "k", idle_seconds=idle_seconds)
    for options in (
        {"max_messages": 0},
        {"max_messages": 1_000_001},
        {"max_bytes": 0},
        {"acknowledge": 1},
        {"wait_ms": 30_001},
    ):
        with pytest.raises(OutOfRange):
            call("lease", queue, "k", generation, 1, **options)
    for page, pages in ((-1, 1), (0, 0), (0, 1_001)):
        with pytest.raises(OutOfRange):
            call("lease_page", queue, "k", 1, page, pages)


def test_clients_repeat_what_takes_several_requests(call: Call, queue: str, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_REQUEST_SECONDS", 0.0)
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 10)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 10)
    generation = call("open_consumer", queue, "k").generation
    send_each(call, queue, 60)
    assert call("lease", queue, "k", generation, 1, max_messages=30).messages == 30
    assert call("acknowledge", queue, "k", generation, 1).acknowledged == 1
    assert call("lease", queue, "k", generation, 2).messages == 30
    released = call("release_consumer", queue, "k")
    assert (released.open_messages, released.settling, released.ready) == (0, False, 30)
    assert call("lease", queue, "k", released.generation, 3, wait_ms=30_000).messages == 30
    call("delete_consumer", queue, "k")
    assert call("queue_stats", queue).ready == 30
