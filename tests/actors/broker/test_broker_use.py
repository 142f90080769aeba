"""The embedding face in use, on both engines, through writer, readers and jobs."""

import gc
import os
import threading

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.errors import MessageNotFound, OutOfRange, QueueNotFound, Stopping, StorageOpenError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.system import open_broker
from support.actors import T0
from support.results import oks


async def test_a_message_from_send_to_ack(broker) -> None:
    produced = await broker.produce("q", "hello")
    (delivery,) = await broker.receive("q", wait_ms=0)
    assert (delivery.id, delivery.sequence, delivery.attempts) == (produced.id, produced.sequence, 1)
    assert (await broker.queue_stats("q")).processing == 1
    assert oks(await broker.ack("q", [delivery.receipt])) == [True]
    assert oks(await broker.ack("q", [delivery.receipt])) == [False]
    assert await broker.receive("q", wait_ms=0) == []


async def test_nack_release_and_extend(broker, clock) -> None:
    await broker.produce("q", "x")
    (delivery,) = await broker.receive("q", wait_ms=0)
    assert oks(await broker.nack("q", [delivery.receipt], delay_ms=0, reason="broke")) == [True]
    (delivery,) = await broker.receive("q", wait_ms=0)
    assert delivery.attempts == 2
    assert oks(await broker.release("q", [delivery.receipt])) == [True]
    (delivery,) = await broker.receive("q", lease_ms=1_000, wait_ms=0)
    assert delivery.attempts == 2
    assert [result.lease_until for result in await broker.extend("q", [delivery.receipt], 60_000)] == [
        T0 + 60_000
    ]
    clock.ms += 59_999
    assert await broker.receive("q", wait_ms=0) == []
    clock.ms += 1
    (delivery,) = await broker.receive("q", wait_ms=0)
    assert delivery.attempts == 3


async def test_undelivered_messages_come_again_uncounted(broker) -> None:
    await broker.produce("q", "x")
    deliveries = await broker.receive("q", wait_ms=0)
    broker.undeliver("q", [delivery.receipt for delivery in deliveries])
    (delivery,) = await broker.receive("q", wait_ms=30_000)
    assert delivery.attempts == 1


async def test_f4_ack_and_nack_of_one_message(broker) -> None:
    produced = await broker.produce("q", "x")
    (delivery,) = await broker.receive("q", wait_ms=0)
    with pytest.raises(MessageNotFound):
        await broker.ack_message("q", "00000000-0000-7000-8000-000000000000", delivery.receipt)
    await broker.nack_message("q", produced.id.upper(), delivery.receipt)
    with pytest.raises(MessageNotFound):
        await broker.nack_message("q", produced.id, delivery.receipt)
    await broker.nack_message("q", produced.id, None)
    await broker.ack_message("q", produced.id, None)
    assert (await broker.message("q", produced.id)).status == "delayed"


async def test_looking_changes_nothing(broker) -> None:
    many = await broker.produce_many("q", [NewMessage(str(n)) for n in range(5)])
    await broker.produce("q", "delayed", process_after=T0 + 1_000)
    for _ in range(2):
        assert [message.content for message in await broker.peek("q", limit=3)] == ["0", "1", "2"]
        newest = (await broker.lists.search("q", limit=4)).messages
        older = (await broker.lists.search("q", before_sequence=newest[-1].sequence)).messages
        assert [message.content for message in newest + older] == ["delayed", "4", "3", "2", "1", "0"]
        stats = await broker.queue_stats("q")
        assert (stats.ready, stats.delayed, stats.oldest_ready_age_ms) == (5, 1, 0)
        assert (await broker.message("q", many[3].id)).content == "3"
        assert [queue.queue for queue in await broker.queues()] == ["q"]
    with pytest.raises(MessageNotFound):
        await broker.message("other", many[3].id)
    with pytest.raises(QueueNotFound):
        await broker.queue_stats("unknown")


async def test_a_waiting_consumer_gets_the_message_when_it_is_sent(broker) -> None:
    async with trio.open_nursery() as nursery:
        got = []

        async def consume() -> None:
            got.extend(await broker.receive("q", wait_ms=limits.WAIT_MS_MAX))

        nursery.start_soon(consume)
        while broker.known.waiting("q") == 0:
            await trio.lowlevel.checkpoint()
        await broker.produce("q", "now")
    assert [delivery.content for delivery in got] == ["now"]


async def test_what_was_sent_is_there_after_reopening(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_broker(url) as broker:
        await broker.produce("q", "kept")
    async with open_broker(url) as broker:
        assert [delivery.content for delivery in await broker.receive("q", wait_ms=0)] == ["kept"]


async def test_two_brokers_on_one_file_are_refused(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_broker(url) as first:
        with pytest.raises(StorageOpenError, match="in use"):
            async with open_broker(url):
                raise AssertionError("opened twice")
        assert (await first.produce("q", "x")).sequence == 1
    async with open_broker(url) as second:
        assert len(await second.receive("q", wait_ms=0)) == 1


@pytest.mark.parametrize("url", ["", "sqlite:", "sqlite:///", "mysql://x", "memory", "forq.db"])
async def test_other_urls_are_refused(url) -> None:
    with pytest.raises(StorageOpenError, match="is not a database URL"):
        async with open_broker(url):
            raise AssertionError("opened")


@pytest.mark.parametrize("argument", ["queue_ttl_hours", "dlq_ttl_hours"])
async def test_times_to_live_are_bounded(argument) -> None:
    for hours in (1, limits.TTL_HOURS_MAX):
        async with open_broker("memory:", **{argument: hours}):
            pass
    for hours in (0, limits.TTL_HOURS_MAX + 1):
        with pytest.raises(OutOfRange, match=argument):
            async with open_broker("memory:", **{argument: hours}):
                raise AssertionError("opened")


async def test_a_closed_broker_refuses_everything(url) -> None:
    async with open_broker(url) as broker:
        await broker.produce("q", "x")
    with pytest.raises(Stopping):
        await broker.produce("q", "x")
    with pytest.raises(Stopping):
        await broker.receive("q", wait_ms=0)
    with pytest.raises(Stopping):
        await broker.queue_stats("q")


async def test_an_error_in_the_body_closes_everything_too(tmp_path) -> None:
    async def fail() -> None:
        async with open_broker(f"sqlite:///{tmp_path / 'forq.db'}") as broker:
            await broker.produce("q", "x")
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await fail()


async def test_opening_and_closing_leaves_nothing_behind(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"

    async def use() -> None:
        async with open_broker(url, durability="normal") as broker:
            await broker.produce("q", "x")
            await broker.queue_stats("q")

    def open_files() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    gc.freeze()  # a collection looks at what this test makes
    await use()
    before = open_files()
    for _ in range(20):
        await use()
    assert open_files() <= before
    assert threading.active_count() < 20
    assert sorted(os.listdir(tmp_path)) == ["forq.db", "forq.db.lock"]


async def test_free_pages_are_given_back(broker) -> None:
    await broker.produce("q", "x" * 200_000)
    await broker.purge("q")
    assert (await broker.start_compaction(started_by="ops")).state == "running"
    assert (await broker.pause_compaction()).state == "paused"
    assert (await broker.start_compaction()).state == "running"
    with trio.fail_after(60):
        while (ended := await broker.compaction_info()).state == "running":
            pass
    assert (ended.state, ended.started_by) == ("done", "ops")
    assert ended.given_back_bytes >= 196_608
    await broker.start_compaction()
    assert (await broker.stop_compaction()).state == "stopped"
