"""The disk guard watches the disk of the database, so that a full disk stops sends and nothing else.

Two amounts of disk space, each of FORQ_DISK_RESERVE_MB, are reserved:

- Free space: sends are refused when their next commit would leave less, before the disk is full. They are accepted
  again when a quarter more is free. Free pages of the database file count as space (disk_space.py), except those that
  leased messages may need. Leases are refused only when the next one would leave little of the reserve.
- The reserve file beside the database: if the disk becomes full nevertheless, because another program filled it, the
  file is deleted. Acks, nacks, extensions, claims and checkpoints use its space: they write to the log, and a
  checkpoint lets the log start over. The file is made again when the disk has space for it. Once the file is gone,
  another program can take its space, too.

With a reserve of 0 there is no such file, and sends leave only as much space as the consumption of stored messages
needs (`DISK_RESERVE_MIB_MIN`): on a full disk the log could take no claim and no ack, and no checkpoint could end.

While sends are refused, the oldest entries of the history and of the log of events are removed until the file has
enough free pages for sends. Otherwise a queue that is drained into the history would free nothing.

Between two checks the guard counts the bytes of commits. When they reach a quarter of the space that the last check
found for sends, or for leases once sends are refused, it checks again at once. So they exceed the bound by one commit
at most. A check costs a few system calls and no query.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

import trio
from msgspec import Struct

from forq_trio.jobs.disk_space import (
    MOVED_BACK_STEP_BYTES,
    bytes_for_leases,
    bytes_for_sends,
    bytes_to_move_back,
    free_bytes_for,
    lacking_free_pages,
    less_leased,
)
from forq_trio.jobs.reserve_file import ReserveFile
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.storage.write_ahead_log import LogSpace, WriteAheadLog
from forq_trio.telemetry import words
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.telemetry.rejections import Cause
from forq_trio.writer_actor import WriterActor


class SpaceFacts(Struct, frozen=True, kw_only=True):
    """The disk space as of the last check, for the admin UI."""

    reserve_bytes: int  # of the reserve file; 0 while there is none
    free_bytes: int  # on the disk, without that file, at the last check
    # this and the next: how much has to be free before sends are accepted again, on the disk without the
    # reserve file, or in the database file
    wanted_disk_bytes: int
    wanted_file_bytes: int
    refused_since: int | None  # epoch ms; None while sends are accepted
    refused: int  # how many calls were refused since
    reserves: bool  # whether FORQ_DISK_RESERVE_MB is more than 0

    @property
    def need(self) -> str:
        """The space that sends need, and what an operator can do."""
        what = "make space or lower FORQ_DISK_RESERVE_MB" if self.reserves else "make space"
        free, wanted = words.size(self.free_bytes), words.size(self.wanted_disk_bytes)
        return f"The disk has {free} free; sends need {wanted}: {what}"


class SendsAgain:
    """A job for a database whose disk only its server can see: after "disk full" it lets sends try again."""

    name = "disk"

    def __init__(self, writer: WriterActor) -> None:
        self._writer = writer

    async def run(self) -> None:
        while True:
            await trio.sleep(limits.DISK_LOOK_SECONDS)
            self._writer.storage.set_full(full=False)


class _WrittenBytes:
    """Compares how much commits have written to the log since the last check with the space that it found."""

    def __init__(self, wal: WriteAheadLog) -> None:
        self._wal = wal
        self._log_pages = 0
        self._bytes = 0
        self._left_bytes = 0  # what sends may write, or leases while sends are refused, as of the last check

    def note_commit(self) -> None:
        pages = self._wal.pages()
        added = pages - self._log_pages if pages >= self._log_pages else pages
        self._log_pages = pages
        self._bytes += added * limits.LOG_PAGE_BYTES

    @property
    def are_many(self) -> bool:
        """Whether commits have used a quarter of the space that was left."""
        return self._bytes * limits.DISK_LOOK_SHARE >= self._left_bytes

    def restart(self, left_bytes: int) -> None:
        """Start over after a check of the disk."""
        self._bytes, self._left_bytes = 0, left_bytes


class _Refused:
    """Since when sends have been refused because the disk is full, and how many."""

    def __init__(self, clock: Clock, counters: Counters) -> None:
        self.since: int | None = None  # epoch ms; None while they are accepted
        self._clock = clock
        self._counters = counters
        self._before = 0  # how many were refused at other times

    @property
    def count(self) -> int:
        return self._counters.rejections[Cause.STORAGE_FULL] - self._before

    def note(self, *, refused: bool) -> bool:
        """Note whether sends are refused; returns whether that has changed."""
        if refused is (self.since is not None):
            return False
        self.since = self._clock.now_ms() if refused else None
        self._before = self._counters.rejections[Cause.STORAGE_FULL]
        return True


class DiskGuard:
    """A job: `run` until cancelled."""

    name = "disk"

    def __init__(
        self,
        wal: WriteAheadLog,
        writer: WriterActor,
        clock: Clock,
        counters: Counters,
        keep_bytes: int,
        free_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        """wal: the log of the database. clock, counters: for since when sends have been refused, and how many.

        keep_bytes: the size of each reserve; 0: no file, and sends leave the least space. free_bytes: returns how much
        this process may still write to the disk of a directory.
        """
        self._wal = wal
        self._reserve = ReserveFile(Path(wal.reserve_path), keep_bytes, free_bytes or free_bytes_of)
        self._writer = writer
        self._written = _WrittenBytes(wal)
        self._refused = _Refused(clock, counters)
        self._woken = trio.Event()
        self._asked_at = -inf  # when it last asked for a checkpoint, on trio's clock
        self._lacking_bytes = 0  # how many bytes of free pages sends lack, as of the last check
        self._last_free_bytes = 0  # as of the last check
        # Set by the code that made the other jobs.
        self.checkpoint_soon: Callable[[], None] = lambda: None  # asks for one, however short the log is
        self.give_way: Callable[[int], None] = lambda _: None  # removes so many bytes of old records

    async def run(self) -> None:
        try:
            while True:
                with suppress(FileNotFoundError):  # the directory was moved: the file watch reports it
                    await self._reserve.restore()
                self.check_disk()
                self._make_space_for_sends()
                with trio.move_on_after(limits.DISK_LOOK_SECONDS):
                    await self._woken.wait()
                self._woken = trio.Event()
        finally:
            self._reserve.delete()  # before the last checkpoint, which may need the space

    def _make_space_for_sends(self) -> None:
        """While sends are refused: remove old history or events, or ask for a checkpoint that shows what is free.

        A checkpoint that finds the disk full wakes this job, so it asks for one at most every DISK_LOOK_SECONDS.
        """
        if not self._writer.storage.sends_refused:
            return
        if not self._wal.space().unmoved_bytes:
            self.give_way(self._lacking_bytes)
        elif trio.current_time() >= self._asked_at + limits.DISK_LOOK_SECONDS:
            self._asked_at = trio.current_time()
            self.checkpoint_soon()

    def checkpointed(self) -> None:
        """Check the disk after a checkpoint while space is short: only it shows how many pages commits have freed."""
        self.check_disk()
        if self._writer.storage.sends_refused:
            self.give_way(self._lacking_bytes)

    def note_commit(self) -> None:
        """Count the bytes of a committed batch, and check the disk if they are much of the space that was left."""
        self._written.note_commit()
        if self._written.are_many and not self._writer.storage.leases_refused:
            self.check_disk()

    def check_disk(self) -> None:
        """Check the disk: refuse sends, or accept them again."""
        storage = self._writer.storage
        try:
            free_bytes = self._reserve.disk_free_bytes
        except FileNotFoundError:
            return
        self._last_free_bytes = free_bytes
        (keep_bytes, has_reserve), space = self._reserves(), self._wal.space()
        for_sends = self._space_of_sends(space)
        reopen_bytes = _reopen_bytes(keep_bytes)
        left = bytes_for_sends(free_bytes, keep_bytes, for_sends, has_reserve=has_reserve)
        to_move_back = bytes_to_move_back(free_bytes, keep_bytes, space, has_reserve=has_reserve)
        for_leases = left
        if not self._copies():
            for_leases = bytes_for_leases(free_bytes, keep_bytes, space, has_reserve=has_reserve)
        a_commit = max(1, min(keep_bytes // 8, limits.COMMIT_BYTES_MAX))
        storage.sends_refused = left < (reopen_bytes if storage.sends_refused else a_commit)
        self._lacking_bytes = 0
        if storage.sends_refused and has_reserve:
            self._lacking_bytes = lacking_free_pages(reopen_bytes, free_bytes, keep_bytes, for_sends)
        storage.leases_refused = storage.sends_refused and for_leases < a_commit
        storage.moving_back_refused = storage.sends_refused and to_move_back < MOVED_BACK_STEP_BYTES
        storage.space_short = left < limits.DISK_SHORT_BYTES
        if not storage.sends_refused:
            left_bytes = left
        elif not storage.moving_back_refused:
            left_bytes = to_move_back
        else:
            left_bytes = for_leases
        self._written.restart(left_bytes)
        if self._refused.note(refused=storage.sends_refused):
            self._log_change()

    def _log_change(self) -> None:
        """Log that sends are refused, or are accepted again."""
        facts = self.facts()
        if facts.refused_since is not None:
            log(
                LogEvent.DISK_FULL,
                free_bytes=facts.free_bytes,
                reserve_bytes=facts.reserve_bytes,
                wanted_bytes=facts.wanted_disk_bytes,
                need=facts.need,
            )
        else:
            log(LogEvent.DISK_ROOM, free_bytes=facts.free_bytes, reserve_bytes=facts.reserve_bytes)

    def _reserves(self) -> tuple[int, bool]:
        """How much sends leave free, and whether the reserve file exists or is not wanted."""
        if self._reserve.keep_bytes:
            return self._reserve.keep_bytes, self._reserve.exists
        least = limits.DISK_RESERVE_MIB_MIN_WITH_HISTORY if self._copies() else limits.DISK_RESERVE_MIB_MIN
        return least * limits.MIB, True

    def _copies(self) -> bool:
        """Whether the history is on: then leases are copies, and acks need the space that sends leave."""
        return self._writer.snapshot().logs["history"].enabled

    def _space_of_sends(self, space: LogSpace) -> LogSpace:
        """The space as it counts for sends: without a reserve they leave no space for leased messages either."""
        return less_leased(space, self._writer.snapshot().leased_bytes) if self._reserve.keep_bytes else space

    def facts(self) -> SpaceFacts:
        space, (keep_bytes, has_reserve) = self._space_of_sends(self._wal.space()), self._reserves()
        reopen_bytes = _reopen_bytes(keep_bytes)
        return SpaceFacts(
            reserve_bytes=self._reserve.keep_bytes if has_reserve else 0,
            free_bytes=self._last_free_bytes,
            wanted_disk_bytes=free_bytes_for(reopen_bytes, keep_bytes, space, has_reserve=has_reserve),
            wanted_file_bytes=reopen_bytes,
            refused_since=self._refused.since,
            refused=self._refused.count,
            reserves=self._reserve.keep_bytes > 0,
        )

    def make_space(self) -> bool:
        """Delete the reserve file, because the disk is full, and check the disk soon. False if there was no file."""
        self._woken.set()
        return self._reserve.take()


def _reopen_bytes(keep_bytes: int) -> int:
    """How much space sends must have before they are accepted again."""
    return keep_bytes // 4 + limits.DISK_REOPEN_BYTES


def free_bytes_of(directory: Path) -> int:
    """Free bytes on the disk of `directory` for users other than root."""
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize
