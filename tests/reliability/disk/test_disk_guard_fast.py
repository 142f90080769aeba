"""The guard between two looks: sends come as fast as they can while its clock stands still.

The disk has a size, and what the files of the database take is what is gone from it. Checkpoints run as they would.
"""

from collections.abc import AsyncIterator

import pytest
import trio

from forq_trio.jobs.disk_space import LOG_SHARE
from forq_trio.model import limits
from forq_trio.model.commands import AckWithResult, Cancel, DropPages, ProduceMany, Purge
from forq_trio.model.consumers.types import Settling
from forq_trio.model.errors import MessageInFlight, StorageFull
from forq_trio.model.limits import KIB, MIB
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from reliability.disk.faulty import FaultyDisk
from reliability.disk.guarded import BODY, DISK, IDLE_MS, KEEP, Server, watched
from support.actors import TrioClock, all_idle, running_writer, until
from support.words import claim, receipts, send


@pytest.fixture
async def server(quick_path, mock_clock) -> AsyncIterator[Server]:
    server = Server(quick_path)
    async with running_writer(server.engine, listener=server.house) as server.writer:
        yield server


@pytest.mark.parametrize("checkpointed", [True, False])
async def test_fast_sends_leave_the_first_reserve_and_the_reserve_file(server, checkpointed) -> None:
    """No second passes: the guard looks because of what commits wrote."""
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        if checkpointed:
            server.checkpoints(nursery)
        stored = await server.fill()
        assert server.low >= KEEP
        assert server.reserve_bytes() == KEEP
        # Nor does it refuse much too early. Without checkpoints every message is in the log, and needs its place in
        # the file as well.
        share = 0.7 if checkpointed else 0.3
        assert stored * BODY >= share * (DISK - 2 * KEEP)
        nursery.cancel_scope.cancel()


async def test_a_queue_that_was_emptied_takes_sends_again_though_the_file_is_as_long_as_before(
    server,
) -> None:
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        stored = await server.fill()
        await server.consume(stored)
        await until(lambda: not server.writer.storage.sends_refused)
        again = await server.fill()
        assert again >= 0.7 * stored
        assert server.low >= KEEP // 4
        nursery.cancel_scope.cancel()


async def test_results_leave_the_space_that_claims_and_acks_need(server) -> None:
    """Acks of small messages stored results that were a thousand times as large, and are never refused."""
    result = "r" * limits.RESULT_BYTES_MAX
    small = (NewMessage("x"),) * (DISK // limits.RESULT_BYTES_MAX)
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        await server.writer.execute(ProduceMany("q", small))
        await server.fill()
        for _ in small:
            held = receipts(await server.writer.execute(claim()))
            assert await server.writer.execute(AckWithResult("q", held, result, 1_000)) == (True,)
            server.free_bytes(server.directory)
        assert server.reserve_bytes() == KEEP
        assert server.low >= KEEP // 2
        nursery.cancel_scope.cancel()


async def test_one_short_commit_that_frees_much_is_enough(server, mock_clock) -> None:
    """It does not make the log grow so much that it is moved for that."""
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        while not server.writer.storage.sends_refused:
            await server.fill()
            server.house.checkpointer.hurry()
            await all_idle()
        await server.writer.execute(Purge("q", 1_000))
        await all_idle()
        mock_clock.jump(limits.DISK_LOOK_SECONDS)
        await until(lambda: not server.writer.storage.sends_refused)
        await server.writer.execute(send("again"))
        nursery.cancel_scope.cancel()


async def test_free_pages_do_not_help_while_a_long_read_holds_the_log(server) -> None:
    """Every send would grow the log, out of the space of acks: it is refused until the read has ended."""
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        await server.consume(await server.fill())
        await until(lambda: not server.writer.storage.sends_refused)
        # Acks have used more while a checkpoint was to come.
        began = server.low = server.free_bytes(server.directory)
        reader = server.engine.open_reader()
        reader._connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
        stored = await server.fill()
        assert server.low >= min(KEEP // 4, began)
        await server.consume(stored)
        reader.close()
        server.house.checkpointer.hurry()
        await until(lambda: not server.writer.storage.sends_refused)
        await server.writer.execute(send("again"))
        nursery.cancel_scope.cancel()


async def test_after_a_restart_free_pages_are_known_and_count(quick_path, server) -> None:
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        await server.consume(await server.fill())
        nursery.cancel_scope.cancel()
    server.engine.log.checkpoint(truncate=True)
    space = server.engine.log.space()
    assert space.free_page_bytes > DISK // 3
    assert space.unmoved_bytes == space.used_bytes == 0


async def test_it_says_since_when_sends_are_refused_and_how_many(server) -> None:
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        assert (server.guard.facts().refused_since, server.writer.storage.refusal) == (None, None)
        began_ms = TrioClock().now_ms()
        await server.fill()
        assert server.writer.storage.refusal == "storage_full"
        server.counters.record_rejection(StorageFull())
        facts = server.guard.facts()
        assert began_ms <= facts.refused_since <= TrioClock().now_ms()
        assert (facts.refused, facts.reserve_bytes) == (1, KEEP)
        assert facts.wanted_file_bytes == KEEP // 4 + limits.DISK_REOPEN_BYTES
        nursery.cancel_scope.cancel()


async def test_a_read_of_leased_messages_uses_the_space_that_sends_left_for_it(server) -> None:
    """Sends use the space from which messages were moved into pages; to move them back needs as much again."""
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        for _ in range(20):
            await server.writer.execute(send(BODY * "x"))
            await all_idle()
        assert not server.writer.storage.sends_refused
        await server.lease()
        assert await server.fill() > 20
        await server.move_back()
        assert server.low >= KEEP
        assert server.reserve_bytes() == KEEP
        await server.settle(Settling.RELEASE)
        await server.consume(20)
        assert server.low >= KEEP // 4
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "end",
    [
        Settling.ACKNOWLEDGE,
        "by id",
        *(
            pytest.param(each, marks=pytest.mark.tier2)
            for each in (Settling.RELEASE, Settling.EXPIRE, "purge")
        ),
    ],
)
async def test_what_is_leased_on_a_full_disk_can_be_ended_though_not_be_looked_at(
    server, mock_clock, end
) -> None:
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        await server.fill()
        leased = (await server.lease()).open.messages
        with pytest.raises(StorageFull):
            await server.move_back()
        if end == "purge":
            while (await server.writer.execute(Purge("q"))).count:
                server.free_bytes(server.directory)
                await server.house.checkpointer.run_now()
        elif end == "by id":
            refused = 0
            for message_id in server.ids:
                try:
                    await server.writer.execute(Cancel("q", message_id))
                except StorageFull:
                    refused += 1
                except MessageInFlight:
                    pass  # looked at, and left to its consumer
                await server.house.checkpointer.run_now()
            assert refused > leased // 2
            await server.settle(Settling.ACKNOWLEDGE)
        else:
            if end is Settling.EXPIRE:
                mock_clock.jump(IDLE_MS / limits.SECOND_MS)
            await server.settle(end)
        assert server.low > 0
        assert server.reserve_bytes() == KEEP
        if end is Settling.RELEASE:
            await server.consume(leased)
        elif end is Settling.EXPIRE:
            assert server.writer.snapshot().counts["q"].total == leased
        nursery.cancel_scope.cancel()


async def test_a_queue_on_a_full_disk_can_be_drained_by_a_consumer(server, mock_clock) -> None:
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        stored = await server.fill()
        assert (await server.lease()).open.messages == stored
        assert server.low >= KEEP // 2
        await server.settle(Settling.ACKNOWLEDGE)
        mock_clock.jump(IDLE_MS / limits.SECOND_MS)
        while server.writer.snapshot().consumers["q/spark"].stored_bytes:
            await server.writer.execute(DropPages("q", "spark"))
            await all_idle()
        mock_clock.jump(limits.DISK_LOOK_SECONDS)
        await until(lambda: not server.writer.storage.sends_refused)
        assert await server.fill() >= 0.7 * stored
        nursery.cancel_scope.cancel()


async def test_leases_that_copy_are_refused_before_the_disk_is_full(server) -> None:
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        server.checkpoints(nursery)
        stored = await server.fill(ttl_ms=limits.DAY_MS)
        with pytest.raises(StorageFull):
            await server.lease()
        assert server.low > 0
        assert server.reserve_bytes() == KEEP
        await server.settle(Settling.RELEASE)
        await server.consume(stored)
        nursery.cancel_scope.cancel()


async def test_without_a_reserve_what_is_stored_can_be_consumed_and_sends_go_on(server) -> None:
    least = limits.DISK_RESERVE_MIB_MIN * MIB
    async with trio.open_nursery() as nursery:
        await server.start(nursery, keep_bytes=0)
        server.checkpoints(nursery)
        stored = await server.fill()
        assert least // LOG_SHARE <= server.low <= least + 4 * MIB
        await server.consume(stored)
        assert server.low > 0
        await until(lambda: not server.writer.storage.sends_refused)
        assert await server.fill() >= 0.7 * stored
        nursery.cancel_scope.cancel()


async def drain(server: Server, mock_clock: trio.testing.MockClock) -> tuple[int, int]:
    """Fill the disk, consume all, fill it again; returns how many were consumed, and how many the history has."""
    stored = await server.fill()
    await server.consume(stored)
    for _ in range(10):
        if not server.writer.storage.sends_refused:
            break
        mock_clock.jump(limits.DISK_LOOK_SECONDS)
        await all_idle()
    assert not server.writer.storage.sends_refused
    assert await server.fill() > 0
    return stored, server.writer.snapshot().history_of(None).messages


async def test_a_history_gives_way_to_sends(quick_path, mock_clock) -> None:
    """A queue that was drained into it freed nothing, and sends were refused for as long as it is kept."""
    async with watched(quick_path, EngineSettings(history=True)) as (server, nursery):
        server.retain(nursery)
        stored, left = await drain(server, mock_clock)
        assert stored // 2 < left < stored
        assert server.low > 0
        assert server.reserve_bytes() == KEEP


async def test_events_give_way_to_sends(quick_path, mock_clock, monkeypatch) -> None:
    monkeypatch.setattr(limits, "DISK_REOPEN_BYTES", 64 * KIB)
    async with watched(quick_path, EngineSettings(events=True)) as (server, nursery):
        server.retain(nursery)
        small = ProduceMany("q", (NewMessage("x"),) * 1_000)
        while not server.writer.storage.sends_refused:
            await server.writer.execute(small)
            await server.writer.execute(Purge("q", 1_000))
            await all_idle()
        for _ in range(10):
            mock_clock.jump(limits.DISK_LOOK_SECONDS)
            await all_idle()
        assert not server.writer.storage.sends_refused
        await server.writer.execute(small)
        assert server.writer.snapshot().logs["events"].first > 1


async def test_a_checkpoint_for_which_there_is_no_space_is_not_tried_without_a_pause(
    quick_path, mock_clock, caplog
) -> None:
    """It woke the guard, which asked for the next one: 500 a second, each with a line in the log."""

    def failures() -> int:
        return sum("checkpoint.failed" in record.getMessage() for record in caplog.records)

    with FaultyDisk().in_use() as disk:
        async with watched(quick_path) as (server, _):
            await server.writer.execute(send(BODY * "x"))
            disk.is_full = lambda _: True
            server.house.checkpointer.hurry()
            looks = 0
            while failures() < 20:
                for _ in range(20):
                    await trio.testing.wait_all_tasks_blocked()
                    await trio.testing.wait_all_threads_completed()
                looks += 1
                mock_clock.jump(limits.DISK_LOOK_SECONDS)
            assert failures() <= 3 * (looks + 1)
            disk.is_full = lambda _: False
