"""Retention: removes finished messages and lifecycle events once they are too old, or too many bytes.

Too many bytes are noticed at the commit that stores them, because the sums are known without a query. Then the job
removes entries step by step, and other calls run between two steps. The further the bytes are above the bound, the
longer a step is (`retention_steps`), so that more is removed than stored.

While sends are refused because the disk is full, acks and claims go on, and each stores an event. So from the first
refusal on the bytes of events may not grow: the oldest are removed, and new ones use their pages. Both logs also make
space for sends: as long as sends lack free pages of the file, the oldest entries of the larger log are removed.
"""

from collections.abc import Callable, Mapping

import trio
from msgspec import Struct

from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Removed, TrimEvents, TrimHistory
from forq_trio.model.logs.types import LogName
from forq_trio.storage.engine import Snapshot
from forq_trio.telemetry.log import LogEvent
from forq_trio.telemetry.log import log as write_log
from forq_trio.writer_actor import WriterActor


class Retention(Struct, frozen=True):
    """How many hours a log's entries are stored, and how many MiB they may take."""

    hours: int = limits.RETENTION_HOURS_DEFAULT
    mib_max: int = limits.RETENTION_MIB_DEFAULT


class BytesBound:
    """How many bytes a log may have: `bytes_max`, and while the disk is full no more than when it became full.

    is_full: whether sends are refused because the disk is full. grows: the log may grow even then, unless the bound was
    lowered, because finished messages use the pages that they had in their queues.
    """

    def __init__(
        self, bytes_max: int, is_full: Callable[[], bool] = lambda: False, *, grows: bool = False
    ) -> None:
        self._bytes_max = bytes_max
        self._is_full = is_full
        self._grows = grows
        self._when_full: int | None = None

    def now(self) -> int:
        """The bound, in bytes, as of the last call of `is_passed`."""
        return self._bytes_max if self._when_full is None else min(self._bytes_max, self._when_full)

    def is_passed(self, log_bytes: int) -> bool:
        """Whether the log has so many bytes more that a commit is worthwhile. Call it after each commit."""
        if not self._is_full():
            self._when_full = None
            return log_bytes > _with_slack(self._bytes_max)
        if self._when_full is None and not self._grows:
            self._when_full = max(log_bytes, limits.DISK_REOPEN_BYTES)
        bytes_max = self.now()
        return log_bytes > min(_with_slack(bytes_max), bytes_max + limits.DISK_REOPEN_BYTES)

    def lower(self, bytes_max: int) -> None:
        """Lower the bound to `bytes_max` until the disk is no longer full."""
        self._when_full = min(self.now(), max(0, bytes_max))


class BytesWatch:
    """Nudges the jobs that trim the logs when a log is clearly above its bound.

    A few bytes above a bound are not worth a commit. `look` is called after each commit, so it does little.
    """

    def __init__(
        self, snapshot: Callable[[], Snapshot], watched: Mapping[LogName, tuple[Periodic, BytesBound]]
    ) -> None:
        self._snapshot = snapshot
        self._watched = [(log, job, bound) for log, (job, bound) in watched.items()]
        self._giving_way = False

    def check_sizes(self) -> None:
        logs = self._snapshot().logs
        for log, job, bound in self._watched:
            if bound.is_passed(logs[log].bytes):
                job.nudge()

    def give_way(self, lacking_bytes: int) -> None:
        """Remove as many bytes from the larger log as sends lack in free pages, the oldest entries first.

        Only the next checkpoint shows what a removal has freed, so the next removal waits for it.
        """
        if lacking_bytes <= 0:
            self._giving_way = False
            return
        logs = self._snapshot().logs
        log, job, bound = max(self._watched, key=lambda watched: logs[watched[0]].bytes)
        if logs[log].bytes > bound.now():
            job.nudge()  # an earlier removal is not finished yet
        elif self._giving_way:
            self._giving_way = False
        elif logs[log].bytes:
            self._giving_way = True
            bound.lower(logs[log].bytes - lacking_bytes)
            write_log(LogEvent.LOG_GAVE_WAY, log=log, bytes=min(lacking_bytes, logs[log].bytes))
            job.nudge()


def _with_slack(bytes_max: int) -> int:
    return bytes_max + bytes_max // limits.RETENTION_SLACK_SHARE


_JOBS: Mapping[LogName, tuple[str, str, float]] = {
    "events": ("Remove old events", "event", limits.EVENTS_TRIM_SECONDS),
    "history": ("Trim the history", "message", limits.HISTORY_TRIM_SECONDS),
}
"""The title of the job of each log, what it removes, and how often."""


async def trim_log(writer: WriterActor, name: LogName, before_ms: int, bytes_max: int) -> Removed:
    """Remove some of the oldest: see `TrimEvents`, `TrimHistory`. Sends no command if none can be removed."""
    log = writer.snapshot().logs[name]
    newest_to_go = log.last - 1 if name == "events" else log.last
    if log.first > newest_to_go:
        await trio.lowlevel.checkpoint()
        return Removed(0, more=False)
    trim = TrimEvents if name == "events" else TrimHistory
    return await writer.execute(trim(before_ms, bytes_max))


def retention_job(
    writer: WriterActor, clock: Clock, log: LogName, retention: Retention, bound: BytesBound | None = None
) -> Periodic:
    """The job that trims a log, even one that is turned off; it writes nothing if nothing can be removed.

    bound: None: the bytes of `retention` are the bound, whether the disk is full or not.
    """
    bytes_bound = bound or BytesBound(retention.mib_max * limits.MIB)
    title, item, seconds = _JOBS[log]

    async def trim() -> str:
        count, more = 0, True
        while more:
            before_ms = clock.now_ms() - retention.hours * limits.HOUR_MS
            removed = await trim_log(writer, log, before_ms, bytes_bound.now())
            count, more = count + removed.count, removed.more
        return counted(count, f"{item} removed", f"{item}s removed")

    return Periodic(log, seconds, trim, title=title, nudged=True)
