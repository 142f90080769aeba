"""Moves the write-ahead log into the database file, from a thread and a connection of its own, never inside a commit.

After each commit it measures the log. For every CHECKPOINT_PAGES that were added it runs a passive checkpoint, which
copies what it can beside commits; so under steady load some pages are always left, and the log would grow without a
bound. When the log has become too long, passive checkpoints are repeated until they leave only a short rest, or
CHECKPOINT_PASSES_MAX times if commits are always quicker. Then the writer is paused between two batches while the rest
is moved, and the next commit starts the log over. So under load calls wait only until the last few commits are moved.

A long read holds the log: nothing after its snapshot can be moved before it ends. Then the writer is not paused,
because that would not help; it is logged once, and tried again after every CHECKPOINT_PAGES. When nothing was committed
for a while, the log is emptied in the same way. While disk space is short, the log is started over as soon as it has
grown a little, but the file stays as long as it is: other programs would take the space, and acks need it. While sends
are refused, a checkpoint is not repeated before the writer is paused, and the writer waits for one beside which the log
grows as much again: else acks would fill the disk.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from time import perf_counter

import trio

from forq_trio.jobs.runs import Runs, counted
from forq_trio.model import limits
from forq_trio.model.errors import Stopping, StorageFull, StorageUnavailable
from forq_trio.storage.write_ahead_log import CheckpointResult, WriteAheadLog
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import Family, gauge
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor


class Checkpointer:
    """A job: `run` until cancelled.

    failed: whether the latest checkpoint failed. on_copied: called after a checkpoint while disk space is short.
    """

    name = "checkpoint"

    def __init__(
        self,
        wal: WriteAheadLog,
        writer: WriterActor,
        counters: Counters,
        on_copied: Callable[[], None] = lambda: None,
    ) -> None:
        self._wal = wal
        self._writer = writer
        self._counters = counters
        self.failed = False
        self._on_copied = on_copied
        self._limiter = trio.CapacityLimiter(1)
        self._grew = trio.Event()
        self._fills_disk = trio.Event()  # the log grows while sends are refused, beside a checkpoint
        self._commits = 0
        self._log_pages = 0
        self._tried_pages = 0  # how long the log was at the last checkpoint
        self._copied_pages = 0  # how many pages of the current log are in the database
        self._asked = False
        self._hold_logged = False
        self.runs = Runs(self.name, "Checkpoint", next_when=_next_when())

    @property
    def held(self) -> bool:
        """True while a long read keeps the log from being emptied."""
        return self._hold_logged and self._log_pages - self._copied_pages > limits.CHECKPOINT_REST_PAGES

    def note_commit(self) -> None:
        """A batch was committed: measure the log."""
        self._commits += 1
        self._log_pages = self._wal.pages()
        if self._log_pages < self._tried_pages:
            self._note_log_started_over()
        if self._has_grown():
            self._grew.set()
            if self._writer.storage.sends_refused:
                self._fills_disk.set()

    def hurry(self) -> None:
        """Move the log into the database now, however short it is."""
        self._asked = True
        self._grew.set()

    async def run_now(self) -> None:
        """`hurry`, and return when a checkpoint that begins from now on has ended or failed. Raises Stopping."""
        self.hurry()
        await self.runs.wait_for_next()

    def _note_log_started_over(self) -> None:
        self._tried_pages = self._copied_pages = 0
        self._hold_logged = False

    def _has_grown(self) -> bool:
        pages = (
            limits.CHECKPOINT_FULL_DISK_PAGES if self._writer.storage.space_short else limits.CHECKPOINT_PAGES
        )
        return self._log_pages - self._tried_pages >= pages

    @property
    def log_bytes(self) -> int:
        """How long the write-ahead log is."""
        return self._wal.pages() * limits.LOG_PAGE_BYTES

    async def run(self) -> None:
        while True:
            await self._grew.wait()
            self._grew = trio.Event()
            result = await self._checkpoint_beside_commits()
            is_long = result is not None and result.log_pages >= limits.CHECKPOINT_PAUSE_PAGES
            if result is not None and (is_long or self._writer.storage.space_short):
                await self._restart_log(result)
            await self._empty_when_idle()

    async def _restart_log(self, result: CheckpointResult) -> None:
        """Run checkpoints until the rest is short, then move the rest while the writer is paused.

        The next commit then starts the log over. The rest is what no checkpoint has moved. A pause cannot move what a
        long read holds: if that is more than a short rest, it is logged, once until the log starts over, and the writer
        is not paused.
        """
        for _ in range(limits.CHECKPOINT_PASSES_MAX):
            rest_pages = (
                self._log_pages - result.copied_pages
            )  # includes the pages that commits added during the checkpoint
            if rest_pages <= limits.CHECKPOINT_REST_PAGES or self._writer.storage.sends_refused:
                break
            result = await self._checkpoint_beside_commits() or result
        if self._log_pages < result.log_pages:
            return  # a checkpoint has moved everything, and the next commit has started the log over
        held_pages = result.log_pages - result.copied_pages
        if held_pages <= limits.CHECKPOINT_REST_PAGES:
            await self._checkpoint_while_paused()
        elif not self._hold_logged:
            self._hold_logged = True
            log(LogEvent.CHECKPOINT_HELD, log_pages=result.log_pages, copied_pages=result.copied_pages)

    async def _empty_when_idle(self) -> None:
        """Wait until the log has grown; empty it after CHECKPOINT_IDLE_SECONDS without a commit."""
        emptied = False
        while not emptied:
            commits = self._commits
            with trio.move_on_after(limits.CHECKPOINT_IDLE_SECONDS):
                await self._grew.wait()
                return
            if commits != self._commits:
                continue
            truncate = not self._writer.storage.space_short
            result = await self._checkpoint_while_paused(truncate=truncate)
            emptied = result is not None and result.log_pages == (0 if truncate else result.copied_pages)

    async def _checkpoint_beside_commits(self) -> CheckpointResult | None:
        """Run one checkpoint; if the disk fills meanwhile, the writer waits for its end."""
        self._fills_disk = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pause_if_disk_fills)
            result = await self._checkpoint()
            nursery.cancel_scope.cancel()
        return result

    async def _pause_if_disk_fills(self) -> None:
        await self._fills_disk.wait()
        with suppress(Stopping):
            async with self._pause():
                await trio.sleep_forever()

    async def _checkpoint_while_paused(self, *, truncate: bool = False) -> CheckpointResult | None:
        async with self._pause():
            return await self._checkpoint(truncate=truncate)

    @asynccontextmanager
    async def _pause(self) -> AsyncIterator[None]:
        async with self._writer.paused():
            started = perf_counter()
            try:
                yield
            finally:
                self._counters.checkpoint_pause_seconds.add(perf_counter() - started)

    async def _checkpoint(self, *, truncate: bool = False) -> CheckpointResult | None:
        """Run one checkpoint in a thread; None if the database refuses it."""
        self._tried_pages = self._log_pages
        self._asked = False
        started = perf_counter()
        try:
            with self.runs.run() as outcome:
                result = await trio.to_thread.run_sync(
                    lambda: self._wal.checkpoint(truncate=truncate), limiter=self._limiter
                )
                outcome.result = self._words(result)
        except StorageUnavailable as error:
            log(LogEvent.CHECKPOINT_FAILED, error=str(error))
            self.failed = True
            if isinstance(error, StorageFull):
                self._writer.note_storage_full()
            return None
        self.failed = False
        self._counters.checkpoint_seconds.add(perf_counter() - started)
        self._copied_pages = result.copied_pages
        if truncate and result.log_pages == 0:
            self._log_pages = 0
            self._note_log_started_over()
        self._tried_pages = min(result.log_pages, self._log_pages)
        if not self._has_grown() and not self._asked:
            self._grew = trio.Event()  # the pages added meanwhile are not enough for another one
        if self._writer.storage.space_short:
            self._on_copied()
        return result

    def _words(self, result: CheckpointResult) -> str:
        """How many pages this checkpoint has moved: SQLite counts from the log's start."""
        if result.log_pages == 0:
            return "the log is empty"
        if result.copied_pages < self._copied_pages:
            self._copied_pages = 0  # the log has started over
        return counted(result.copied_pages - self._copied_pages, "page", "pages")


def _next_when() -> str:
    grown_mib = limits.CHECKPOINT_PAGES * limits.LOG_PAGE_BYTES / limits.MIB
    return f"when {grown_mib:.0f} MiB were added, or {limits.CHECKPOINT_IDLE_SECONDS:.0f} s after the last commit"


def checkpoint_families(checkpointer: Checkpointer | None) -> Iterator[Family]:
    """The metrics of the write-ahead log; zeros where the engine has none."""
    log_bytes = 0 if checkpointer is None else checkpointer.log_bytes
    yield gauge("forq_log_bytes", "Bytes of the write-ahead log, now.", log_bytes)
    failed = checkpointer is not None and checkpointer.failed
    yield gauge("forq_checkpoint_failed", "1 while the latest checkpoint failed, else 0.", int(failed))
