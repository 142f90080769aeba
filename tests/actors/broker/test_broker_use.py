"""The embedding face in use, on both engines, through writer, readers and jobs."""

import gc
import os
import threading

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.errors import MessageNotFound, OutOfRange, Stopping, StorageOpenError
from forq_trio.system import open_broker


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


async def test_two_brokers_on_one_file_are_refused(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_broker(url) as first:
        with pytest.raises(StorageOpenError, match="in use"):
            async with open_broker(url):
                raise AssertionError("opened twice")
        assert (await first.produce("q", "x")).sequence == 1
    async with open_broker(url) as second:
        assert len(await second.receive("q", wait_ms=0)) == 1


async def test_other_urls_are_refused() -> None:
    for url in ("", "sqlite:", "sqlite:///", "mysql://x", "memory", "forq.db"):
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
    before, threads = open_files(), threading.active_count()
    for _ in range(8):
        await use()
    assert open_files() <= before
    assert threading.active_count() < threads + 8
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
