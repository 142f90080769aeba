"""The guard between two looks: sends come as fast as they can while its clock stands still.

The disk has a size, and what the files of the database take is what is gone from it. Checkpoints run as they would.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest
import trio

from forq_trio.jobs.checkpointer import Checkpointer
from forq_trio.jobs.disk_guard import DiskGuard
from forq_trio.jobs.disk_space import LOG_SHARE
from forq_trio.jobs.housekeeping import Housekeeping
from forq_trio.jobs.retention import BytesBound, BytesWatch, Retention, retention_job
from forq_trio.model import limits
from forq_trio.model.commands import (
    Cancel,
    DropPages,
    LeaseMessages,
    MoveBack,
    OpenConsumer,
    ProduceMany,
    Purge,
    SettleLease,
)
from forq_trio.model.consumers.types import PipelineConsumer, Settling
from forq_trio.model.errors import MessageInFlight, StorageFull
from forq_trio.model.limits import KIB, MIB
from forq_trio.model.logs.types import LogName
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.log import SqliteLog
from forq_trio.storage.write_ahead_log import CheckpointResult
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from reliability.disk.faulty import FaultyDisk
from support.actors import TrioClock, all_idle, running_writer, until
from support.words import ack, claim, send

KEEP = 4 * MIB
LOGS: tuple[LogName, ...] = ("history", "events")
DISK = 24 * MIB
BODY = 100 * KIB
IDLE_MS = limits.CONSUMER_IDLE_SECONDS_MIN * limits.SECOND_MS


class Server:
    """A writer with its guard and checkpointer. low: the least that was free beside the reserve file.
    ids: of the messages that filled the disk."""

    def __init__(self, directory: Path, settings: EngineSettings | None = None) -> None:
        self.directory = directory
        self.low = DISK
        self.ids: list[str] = []
        self.writer: WriterActor
        self.counters = Counters()
        self.guard: DiskGuard
        self.house = Housekeeping()
        self.engine = SqliteEngine(str(directory / "forq.db"), settings or EngineSettings())

    def free_bytes(self, _directory: Path) -> int:
        taken = sum(entry.stat().st_size for entry in os.scandir(self.directory))
        self.low = min(self.low, DISK - taken)
        return DISK - taken

    def reserve_bytes(self) -> int:
        return os.path.getsize(self.engine.log.reserve_path)

    async def start(self, nursery: trio.Nursery, keep_bytes: int = KEEP) -> None:
        self.guard = self.house.disk_guard = DiskGuard(
            self.engine.log, self.writer, TrioClock(), self.counters, keep_bytes, self.free_bytes
        )
        nursery.start_soon(self.guard.run)
        await until(
            lambda: self.guard._reserve.exists is bool(keep_bytes) and not self.writer.storage.sends_refused
        )

    def checkpoints(self, nursery: trio.Nursery) -> None:
        checkpointer = Checkpointer(self.engine.log, self.writer, self.counters, self.guard.checkpointed)
        self.house.checkpointer = checkpointer
        self.guard.checkpoint_soon = checkpointer.hurry
        nursery.start_soon(checkpointer.run)

    def retain(self, nursery: trio.Nursery) -> None:
        """Run the jobs that shorten the logs, which give way to sends."""
        bounds = {
            log: BytesBound(64 * MIB, lambda: self.writer.storage.sends_refused, grows=log == "history")
            for log in LOGS
        }
        jobs = {
            log: (retention_job(self.writer, TrioClock(), log, Retention(), bounds[log]), bounds[log])
            for log in LOGS
        }
        self.house.retention = BytesWatch(self.writer.snapshot, jobs)
        self.guard.give_way = self.house.retention.give_way
        for job, _ in jobs.values():
            nursery.start_soon(job.run)

    async def fill(self, **fields: Any) -> int:
        """Send until it is refused; returns how many were stored."""
        stored = 0
        while True:
            try:
                self.ids.append((await self.writer.execute(send(BODY * "x", **fields))).id)
            except StorageFull:
                return stored
            stored += 1
            self.free_bytes(self.directory)
            await all_idle()

    async def consume(self, count: int) -> None:
        for _ in range(count):
            (held,) = await self.writer.execute(claim(most=1))
            assert await self.writer.execute(ack(held)) == (True,)
        await all_idle()

    async def lease(self, number: int = 1) -> PipelineConsumer:
        """Lease all that is ready to a consumer."""
        if number == 1:
            await self.writer.execute(OpenConsumer("q", "spark", IDLE_MS))
        step = LeaseMessages("q", "spark", 1, number, 10_000, limits.CONSUMER_LEASE_BYTES_MAX)
        while True:
            consumer = await self.writer.execute(step)
            self.free_bytes(self.directory)
            if consumer.open is None or consumer.complete:
                return consumer
            await all_idle()

    async def settle(self, how: Settling) -> None:
        step = SettleLease("q", "spark", None, 1, how)
        while (await self.writer.execute(step)).open is not None:
            self.free_bytes(self.directory)
            await self.house.checkpointer.run_now()

    async def move_back(self) -> None:
        """What a read of all leased messages does."""
        try:
            await self.writer.execute(MoveBack("q", 0, limits.SEQUENCE_MAX))
        finally:
            self.free_bytes(self.directory)
            await all_idle()


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
    server = Server(quick_path, EngineSettings(history=True))
    async with (
        running_writer(server.engine, listener=server.house) as server.writer,
        trio.open_nursery() as nursery,
    ):
        await server.start(nursery)
        server.checkpoints(nursery)
        server.retain(nursery)
        stored, left = await drain(server, mock_clock)
        assert stored // 2 < left < stored
        assert server.low > 0
        assert server.reserve_bytes() == KEEP
        nursery.cancel_scope.cancel()


class SlowCheckpoints:
    """Checkpoints that end only once the log has grown by `pages` meanwhile, or the writer waits for them."""

    def __init__(self, log: SqliteLog, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._log, self._pages = log, pages
        self._checkpoint, self._paused = log.checkpoint, WriterActor.paused
        self._ends, self._all_end = Semaphore(0), False
        self._begun_pages: int | None = None  # while one waits
        self.ended = 0
        monkeypatch.setattr(log, "checkpoint", self.checkpoint)
        monkeypatch.setattr(WriterActor, "paused", lambda writer: self.paused(writer))

    def checkpoint(self, **how: bool) -> CheckpointResult:
        result = self._checkpoint(**how)
        self._begun_pages = self._log.pages()
        if not self._all_end:
            self._ends.acquire()
        self._begun_pages = None
        self.ended += 1
        return result

    @asynccontextmanager
    async def paused(self, writer: WriterActor) -> AsyncIterator[None]:
        async with self._paused(writer):
            self.let_end()
            yield
            self._ends, self._all_end = Semaphore(0), False

    def let_end(self) -> None:
        self._all_end = True
        self._ends.release()

    async def look(self) -> None:
        """Let the checkpoint end if it is time."""
        if self._begun_pages is not None and self._log.pages() >= self._begun_pages + self._pages:
            before = self.ended
            self._ends.release()
            await until(lambda: self.ended > before)


@pytest.mark.parametrize("pages", [limits.CHECKPOINT_FULL_DISK_PAGES - 10, 10**9])
async def test_acks_into_a_history_wait_for_a_slow_checkpoint_while_the_disk_is_full(
    quick_path, mock_clock, monkeypatch, pages
) -> None:
    """Each ack makes the log longer by its message, and only a checkpoint lets it start over."""
    server = Server(quick_path, EngineSettings(history=True))
    async with (
        running_writer(server.engine, listener=server.house) as server.writer,
        trio.open_nursery() as nursery,
    ):
        await server.start(nursery)
        server.checkpoints(nursery)
        stored = await server.fill()
        slow = SlowCheckpoints(server.engine.log, pages, monkeypatch)
        server.house.checkpointer.hurry()
        for _ in range(stored):
            (held,) = await server.writer.execute(claim(most=1))
            assert await server.writer.execute(ack(held)) == (True,)
            server.free_bytes(server.directory)
            await slow.look()
        slow.let_end()
        await all_idle()
        assert server.low > 0
        nursery.cancel_scope.cancel()


async def test_events_give_way_to_sends(quick_path, mock_clock, monkeypatch) -> None:
    monkeypatch.setattr(limits, "DISK_REOPEN_BYTES", 64 * KIB)
    server = Server(quick_path, EngineSettings(events=True))
    async with (
        running_writer(server.engine, listener=server.house) as server.writer,
        trio.open_nursery() as nursery,
    ):
        await server.start(nursery)
        server.checkpoints(nursery)
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
        nursery.cancel_scope.cancel()


async def test_a_checkpoint_for_which_there_is_no_space_is_not_tried_without_a_pause(
    quick_path, mock_clock, caplog
) -> None:
    """It woke the guard, which asked for the next one: 500 a second, each with a line in the log."""

    def failures() -> int:
        return sum("checkpoint.failed" in record.getMessage() for record in caplog.records)

    with FaultyDisk().in_use() as disk:
        server = Server(quick_path)
        async with (
            running_writer(server.engine, listener=server.house) as server.writer,
            trio.open_nursery() as nursery,
        ):
            await server.start(nursery)
            server.checkpoints(nursery)
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
            nursery.cancel_scope.cancel()
