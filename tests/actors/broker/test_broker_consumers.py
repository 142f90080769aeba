"""Consumers through the broker: requests that end after a while, waits for messages, deletion, and the job."""

from contextlib import closing

import apsw
import pytest
import trio
import trio.testing

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import ConsumerFenced, ConsumerNotFound, LeasesFull, ServiceError
from forq_trio.system import open_broker
from support.processes import WAIT_SECONDS_MAX


@pytest.fixture(autouse=True)
def _two_messages_a_page(monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 2)


async def leased(broker, contents, name="k", queue="q", **options):
    """Open a consumer that leases these messages; its generation."""
    opened = await broker.open_consumer(queue, name, **options)
    for content in contents:
        await broker.produce(queue, content)
    assert (await broker.lease(queue, name, opened.generation, 1)).messages == len(contents)
    return opened.generation


async def test_leased_messages_are_looked_at_like_others(broker):
    await leased(broker, "abcde")
    rows = (await broker.lists.list_messages("q", "processing", limit=2)).rows
    assert [row.preview for row in rows] == ["e", "d"]
    assert (await broker.message("q", rows[0].id)).content == "e"
    assert await broker.lists.queue_of(rows[1].sequence) == "q"
    assert (await broker.lists.count_messages("q", MessageFilter())).processing == 5


async def test_a_lease_is_made_while_another_is_read(broker):
    generation = await leased(broker, "abc")
    for content in "defg":
        await broker.produce("q", content)
    ahead = await broker.lease("q", "k", generation, 2, max_messages=3, ahead=True)
    assert (ahead.messages, ahead.complete, ahead.waiting, ahead.acknowledged) == (3, True, False, 0)
    info = await broker.consumer("q", "k")
    assert (info.leased, info.acknowledged, info.complete, info.open_messages) == (2, 0, True, 6)
    next_one = await broker.lease("q", "k", generation, 3, acknowledge=1, max_messages=3, ahead=True)
    assert (next_one.messages, next_one.complete, next_one.waiting, next_one.acknowledged) == (
        1,
        False,
        True,
        1,
    )
    assert (await broker.consumer("q", "k")).complete is False
    assert (await broker.lease("q", "k", generation, 3, max_messages=3)).complete
    assert (await broker.acknowledge("q", "k", generation, 3)).acknowledged == 3
    assert (await broker.queue_stats("q")).processing == 0


async def test_a_lease_that_is_made_ahead_gets_whole_pages_however_slowly_messages_come(broker, monkeypatch):
    generation = await leased(broker, "abc")
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 4)
    monkeypatch.setattr(limits, "CONSUMER_STEP_MESSAGES_MAX", 32)
    for n in range(10):
        await broker.produce("q", str(n))
        ahead = await broker.lease("q", "k", generation, 2, max_messages=100, ahead=True)
        assert (ahead.complete, ahead.waiting) == (False, True)
    assert (ahead.messages, ahead.pages) == (9, 3)
    whole = await broker.lease("q", "k", generation, 2, acknowledge=1, max_messages=100)
    assert (whole.messages, whole.pages, whole.complete) == (10, 4, True)


async def test_a_release_gives_both_back(broker):
    generation = await leased(broker, "abc")
    await broker.produce("q", "d")
    await broker.lease("q", "k", generation, 2, ahead=True)
    released = await broker.release_consumer("q", "k")
    assert (released.open_messages, released.released_before, released.ready) == (0, 3, 4)
    assert await broker.delete_consumer("q", "k") is None


async def test_no_generation_comes_back_over_a_restart(url, clock):
    async with open_broker(url, durability="normal", clock=clock) as broker:
        old = (await broker.open_consumer("q", "k")).generation
        await broker.delete_consumer("q", "k")
    async with open_broker(url, durability="normal", clock=clock) as broker:
        assert (await broker.open_consumer("q", "k")).generation > old
        with pytest.raises(ConsumerFenced):
            await broker.lease("q", "k", old, 1)


async def test_the_bound_of_pages_is_kept_over_a_restart(url, clock, monkeypatch):
    async with open_broker(url, durability="normal", clock=clock) as broker:
        generation = await leased(broker, "ab")
        size = (await broker.consumer("q", "k")).open_bytes
    monkeypatch.setattr(limits, "CONSUMER_PAGES_BYTES_MAX", size)
    async with open_broker(url, durability="normal", clock=clock) as broker:
        other = await broker.open_consumer("q", "l")
        await broker.produce("q", "c")
        with pytest.raises(LeasesFull):
            await broker.lease("q", "l", other.generation, 1)
        await broker.acknowledge("q", "k", generation, 1)
        assert (await broker.lease("q", "l", other.generation, 1)).messages == 1


async def test_a_request_settles_for_a_while_and_the_next_one_goes_on(broker):
    generation = await leased(broker, "abcde")
    settling = [await broker.leases.acknowledge("q", "k", generation, 1, seconds=0.0)]
    while settling[-1].acknowledged < 1:
        settling.append(await broker.leases.acknowledge("q", "k", generation, 1, seconds=0.0))
    assert len(settling) >= 3
    assert [each.settling for each in settling] == [True] * (len(settling) - 1) + [False]
    await leased(broker, "abc", "l")
    settling = [await broker.leases.release("q", "l", seconds=0.0)]
    while settling[-1].settling:
        settling.append(await broker.leases.release("q", "l", seconds=0.0))
    assert len(settling) >= 2
    generation = (await broker.open_consumer("q", "m")).generation
    assert (await broker.lease("q", "m", generation, 1)).messages == 3
    requests = 1
    while not await broker.leases.delete("q", "m", seconds=0.0):
        requests += 1
    assert requests >= 2
    assert (await broker.queue_stats("q")).ready == 3


async def test_a_deletion_ends_although_the_owner_goes_on_leasing(broker):
    generation = await leased(broker, "abcdefgh")
    fenced = trio.Event()

    async def own():
        number = 1
        try:
            while True:
                await broker.lease("q", "k", generation, number, acknowledge=number - 1, max_messages=2)
                number += 1
        except (ConsumerFenced, ConsumerNotFound):
            fenced.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(own)
        with trio.fail_after(WAIT_SECONDS_MAX):
            await broker.delete_consumer("q", "k")
            await fenced.wait()
    assert await broker.consumers("q") == []


async def test_a_lease_waits_for_its_first_message(broker):
    generation = (await broker.open_consumer("q", "k")).generation
    answers = []

    async def lease():
        answers.append(await broker.lease("q", "k", generation, 1, wait_ms=30_000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease)
        await trio.testing.wait_all_tasks_blocked()
        await broker.produce("q", "x")
    assert (answers[0].messages, answers[0].complete) == (1, True)
    await broker.acknowledge("q", "k", generation, 1)
    assert (await broker.lease("q", "k", generation, 2, wait_ms=1)).messages == 0


async def test_the_job_goes_on_behind_a_damaged_consumer(broker, url, clock):
    for name in "abc":
        await leased(broker, [name], name, idle_seconds=60)
    with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("DELETE FROM consumer_pages WHERE consumer = 'a'")
    clock.ms += 60_000
    with pytest.raises(ServiceError):
        await broker.leases.settle_unused()
    assert [each.open_messages for each in await broker.consumers("q")] == [1, 0, 0]


async def test_the_job_drops_the_kept_pages_of_an_idle_consumer(broker, clock):
    generation = await leased(broker, "abc", idle_seconds=60)
    assert (await broker.acknowledge("q", "k", generation, 1)).oldest_readable == 1
    clock.ms += 59_999
    await broker.leases.settle_unused()
    assert (await broker.consumer("q", "k")).oldest_readable == 1
    clock.ms += 1
    await broker.leases.settle_unused()
    assert (await broker.consumer("q", "k")).oldest_readable == 0
