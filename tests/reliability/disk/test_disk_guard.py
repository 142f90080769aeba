"""The guard and the writer on a disk whose free space a test sets: sends are refused in time, the rest goes on."""

import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from forq_trio.jobs.disk_guard import DiskGuard, free_bytes_of
from forq_trio.jobs.housekeeping import Housekeeping
from forq_trio.model import limits
from forq_trio.model.commands import Purge
from forq_trio.model.errors import StorageFull
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from reliability.disk.faulty import FaultyDisk
from support.actors import ObservedEngine, TrioClock, all_idle, elapse, running_writer, until
from support.words import Pending, ack, claim, send

KEEP = limits.MIB
PLENTY = 100 * KEEP
COMMIT = KEEP // 8  # what has to fit before the first reserve is touched


class Place:
    """A writer with a guard on one disk. free: the bytes that are free on it, the reserve not counted; full: whether
    SQLite finds no room there as long as the reserve is not given up."""

    def __init__(self, directory: Path, disk: FaultyDisk) -> None:
        self.free = PLENTY
        self.full = False
        self.looks = 0
        self.engine = ObservedEngine(SqliteEngine(str(directory / "forq.db"), EngineSettings()))
        self.reserve = Path(str(self.engine.log.reserve_path))
        self.writer: WriterActor
        self.house = Housekeeping()
        disk.is_full = lambda _: self.full and self.reserve.exists()

    def free_bytes(self, directory: Path) -> int:
        assert directory == self.reserve.parent
        self.looks += 1
        return self.free

    def empty_log(self) -> None:
        """Move all of the log into the file: then only the disk's free space counts."""
        self.engine.log.checkpoint(truncate=True)

    async def guarded(self, nursery: trio.Nursery, keep_bytes: int = KEEP) -> None:
        self.house.disk_guard = DiskGuard(
            self.engine.log, self.writer, TrioClock(), Counters(), keep_bytes, self.free_bytes
        )
        nursery.start_soon(self.house.disk_guard.run)
        wanted = keep_bytes if self.free >= 2 * keep_bytes > 0 else 0
        facts = self.house.disk_guard.facts  # a file that is there may not yet be what the guard knows of
        await until(lambda: self.looks > 0 and facts().reserve_bytes == wanted)

    def reserved_bytes(self) -> int:
        return self.reserve.stat().st_blocks * 512 if self.reserve.exists() else 0


@pytest.fixture
async def place(quick_path, autojump_clock) -> AsyncIterator[Place]:
    with FaultyDisk().in_use() as disk:
        place = Place(quick_path, disk)
        async with running_writer(place.engine, listener=place.house) as place.writer:
            yield place
            place.full = False


async def look() -> None:
    await elapse(limits.DISK_LOOK_SECONDS * 1.5)


async def look_until(happened: Callable[[], bool]) -> None:
    """Look again and again: the clock also jumps while a look is under way in its thread, so that one may be missed."""
    while not happened():
        await look()


async def test_a_reserve_of_real_bytes_lies_beside_the_file_while_the_guard_runs(
    place, autojump_clock
) -> None:
    async with trio.open_nursery() as nursery:
        await place.guarded(nursery)
        assert place.reserve.stat().st_blocks * 512 >= KEEP
        assert place.reserve.stat().st_mode & 0o777 == 0o600
        assert place.reserve.parent == Path(place.engine._engine._database.real_path).parent
        nursery.cancel_scope.cancel()
    assert not place.reserve.exists()


async def test_sends_are_refused_before_the_disk_is_full_and_accepted_again_with_some_distance(
    place, autojump_clock
) -> None:
    async with trio.open_nursery() as nursery:
        place.empty_log()
        await place.guarded(nursery)
        for free, accepted in (
            (KEEP + COMMIT, True),
            (KEEP + COMMIT - 1, False),
            (KEEP + COMMIT, False),
            (2 * KEEP, False),
            (PLENTY, True),
            (KEEP + COMMIT, True),
        ):
            place.free = free
            await look()
            # The guard looks in a thread, which the simulated clock does not wait for.
            await until(lambda accepted=accepted: place.writer.storage.sends_refused is not accepted)
        place.free = 0
        await look()
        place.engine.batches.clear()
        with pytest.raises(StorageFull):
            await place.writer.execute(send())
        assert place.engine.batches == []
        assert await place.writer.execute(claim()) == ()
        assert place.reserve.exists()
        nursery.cancel_scope.cancel()


async def test_a_batch_that_finds_the_disk_full_runs_again_without_its_sends(place, autojump_clock) -> None:
    writer = place.writer
    async with trio.open_nursery() as nursery:
        await place.guarded(nursery)
        await writer.execute(send("one"))
        await writer.execute(send("two"))
        (held,) = await writer.execute(claim())
        place.full, place.free = True, 0
        place.engine.batches.clear()
        calls = [Pending(nursery, writer, each) for each in (send("x" * 9_000), ack(held), claim(), send())]
        outcomes = [await call.finished() for call in calls]
        assert [type(outcome) for outcome in outcomes] == [StorageFull, tuple, tuple, StorageFull]
        assert outcomes[1] == (True,)
        assert outcomes[2][0].content == "two"
        assert [len(batch.commands) for batch in place.engine.batches] == [4, 2]
        assert writer.storage.sends_refused
        assert not place.reserve.exists()
        assert writer.snapshot().counts["q"].total == 1
        nursery.cancel_scope.cancel()


async def test_long_work_that_waits_for_a_batch_which_the_full_disk_refuses_goes_on(
    place, autojump_clock
) -> None:
    async with trio.open_nursery() as nursery:
        await place.guarded(nursery)
        await place.writer.execute(send("one"))
        place.full, place.free = True, 0
        calls = [Pending(nursery, place.writer, each) for each in (send(), Purge("q"))]
        with trio.fail_after(1):
            outcomes = [await call.finished() for call in calls]
        assert type(outcomes[0]) is StorageFull
        assert outcomes[1].count == 1
        nursery.cancel_scope.cancel()


async def test_sends_go_on_without_a_restart_once_there_is_room_and_a_reserve_again(
    place, autojump_clock
) -> None:
    writer = place.writer
    async with trio.open_nursery() as nursery:
        await place.guarded(nursery)
        place.full, place.free = True, 0
        with pytest.raises(StorageFull):
            await writer.execute(send())
        place.full = False
        for free, has_reserve in ((0, False), (KEEP, False), (KEEP + KEEP // 4, True)):
            place.free = free
            await look()
            await look_until(lambda wanted=has_reserve: place.reserve.exists() is wanted)
            assert writer.storage.sends_refused
        place.free = PLENTY
        await look_until(lambda: not writer.storage.sends_refused)
        assert place.reserve.exists()
        assert (await writer.execute(send())).sequence == 1
        nursery.cancel_scope.cancel()


async def test_a_reserve_that_is_given_up_while_it_is_made_is_made_again(
    place, autojump_clock, monkeypatch
) -> None:
    made, given_up, allocate = threading.Event(), threading.Event(), os.posix_fallocate

    def slow(descriptor: int, offset: int, size: int) -> None:
        made.set()
        given_up.wait()
        allocate(descriptor, offset, size)

    monkeypatch.setattr("os.posix_fallocate", slow)
    async with trio.open_nursery() as nursery:
        house = place.house.disk_guard = DiskGuard(
            place.engine.log, place.writer, TrioClock(), Counters(), KEEP
        )
        nursery.start_soon(house.run)
        await until(made.is_set)
        house.make_space()
        given_up.set()
        await all_idle()
        await look()
        await all_idle()
        assert place.reserved_bytes() >= KEEP
        nursery.cancel_scope.cancel()


async def test_a_directory_that_was_moved_does_not_end_the_guard(place, autojump_clock, tmp_path) -> None:
    """What to do about it is the file watch's."""
    place.reserve = tmp_path / "data" / "reserve"
    place.reserve.parent.mkdir()
    place.engine.log.reserve_path = str(place.reserve)
    async with trio.open_nursery() as nursery:
        house = place.house.disk_guard = DiskGuard(
            place.engine.log, place.writer, TrioClock(), Counters(), KEEP
        )
        nursery.start_soon(house.run)
        await until(lambda: house.facts().reserve_bytes == KEEP)
        moved = place.reserve.parent.rename(tmp_path / "moved")
        await look()
        await look()
        moved.rename(tmp_path / "data")
        assert house.make_space()
        await look()
        await until(place.reserve.exists)
        nursery.cancel_scope.cancel()


async def test_without_a_reserve_sends_leave_what_the_others_need(place, autojump_clock) -> None:
    least = limits.DISK_RESERVE_MIB_MIN * limits.MIB
    async with trio.open_nursery() as nursery:
        place.empty_log()
        place.free = least + 2 * limits.MIB
        await place.guarded(nursery, keep_bytes=0)
        assert not place.writer.storage.sends_refused
        place.free = least
        await look_until(lambda: place.writer.storage.sends_refused)
        assert place.house.disk_guard.facts().reserve_bytes == 0
        assert not place.reserve.exists()
        place.reserve.touch()  # the disk of this test is full while it is there
        place.full, place.free = True, PLENTY
        await look_until(lambda: not place.writer.storage.sends_refused)
        with pytest.raises(StorageFull):
            await place.writer.execute(send())
        place.full = False
        await look_until(lambda: not place.writer.storage.sends_refused)
        await place.writer.execute(send())
        nursery.cancel_scope.cancel()


async def test_when_there_is_no_room_at_all_the_others_are_told_so_too_and_nothing_is_lost(
    place, autojump_clock
) -> None:
    writer = place.writer
    await writer.execute(send("kept"))
    (held,) = await writer.execute(claim())
    place.reserve.touch()
    place.full = True
    with pytest.raises(StorageFull):
        await writer.execute(ack(held))
    place.full = False
    assert await writer.execute(ack(held)) == (True,)


async def test_receivers_stay_parked_through_a_full_disk(place, autojump_clock) -> None:
    writer = place.writer
    async with trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(20_000))
        await trio.testing.wait_all_tasks_blocked()
        place.reserve.touch()
        place.full = True
        with pytest.raises(StorageFull):
            await writer.execute(send("x"))
        place.full = writer.storage.sends_refused = False
        await writer.execute(send("y"))
        assert [delivery.content for delivery in await receiver.finished()] == ["y"]


async def test_what_a_killed_server_kept_is_given_up_when_its_file_is_opened(quick_path) -> None:
    """It may be what makes a start on a full disk possible."""
    left_behind = quick_path / "forq.db.reserve"
    left_behind.write_bytes(bytes(1_000))
    SqliteEngine(str(quick_path / "forq.db"), EngineSettings()).close()
    assert not left_behind.exists()


def test_free_space_is_what_others_than_root_may_use(quick_path) -> None:
    assert 0 < free_bytes_of(quick_path) < 2**60


async def test_a_reserve_of_nothing_is_not_said_to_be_lowered(place, autojump_clock) -> None:
    place.free = 0
    async with trio.open_nursery() as nursery:
        await place.guarded(nursery, 0)
        await look()
        assert place.writer.storage.sends_refused
        need = place.house.disk_guard.facts().need
        assert need.startswith("The disk has 0 B free; sends need ")
        assert need.endswith(": make space")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("keep_bytes", [KEEP, 64 * KEEP])
async def test_a_disk_that_is_too_small_from_the_start_is_told_what_sends_need(
    place, autojump_clock, keep_bytes
) -> None:
    """As much as the guard says is enough, and a byte less is not."""
    place.free = keep_bytes
    async with trio.open_nursery() as nursery:
        await place.guarded(nursery, keep_bytes)
        place.empty_log()
        await look()
        guard = place.house.disk_guard
        assert place.writer.storage.sends_refused
        facts = guard.facts()
        assert (facts.reserve_bytes, facts.free_bytes) == (0, keep_bytes)
        assert facts.wanted_disk_bytes > 2 * keep_bytes  # with what the reserve file will take
        assert facts.need.endswith(": make space or lower FORQ_DISK_RESERVE_MB")
        place.free = facts.wanted_disk_bytes - 1
        guard.check_disk()
        assert place.writer.storage.sends_refused
        place.free += 1
        guard.check_disk()
        assert not place.writer.storage.sends_refused
        nursery.cancel_scope.cancel()
