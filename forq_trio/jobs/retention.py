"""Retention: removes finished messages and lifecycle events once they are too old, or too many bytes.

Too many bytes are noticed with the commit that stores them: the sums are known without a query. Then the job removes
them step by step, between which others are served; the further they are above the bound, the longer is a step
(`rules.retention_steps`), so that more go than come.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Removed
from forq_trio.storage.engine import Snapshot


class HistoryRetention(Struct, frozen=True):
    """For how many hours finished messages stay, and how many MiB of them in all."""

    hours: int = limits.HISTORY_HOURS_DEFAULT
    mib_max: int = limits.HISTORY_MIB_DEFAULT


class EventRetention(Struct, frozen=True):
    """For how many hours events stay, and how many MiB of them."""

    hours: int = limits.EVENTS_HOURS_DEFAULT
    mib_max: int = limits.EVENTS_MIB_DEFAULT


class BytesWatch:
    """Nudges the jobs that trim history and events when there are more bytes than their bounds by some.

    So few bytes above a bound are never worth a commit. It is called after each commit, so it does little.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        history: Periodic,
        history_mib: int,
        events: Periodic,
        events_mib: int,
    ) -> None:
        self._snapshot = snapshot
        self._history, self._history_bytes_max = history, _with_slack(history_mib)
        self._events, self._event_bytes_max = events, _with_slack(events_mib)

    def look(self) -> None:
        snapshot = self._snapshot()
        if snapshot.history_bytes > self._history_bytes_max:
            self._history.nudge()
        if snapshot.event_log.bytes > self._event_bytes_max:
            self._events.nudge()


def _with_slack(mib_max: int) -> int:
    bytes_max = mib_max * limits.MIB
    return bytes_max + bytes_max // limits.RETENTION_SLACK_SHARE


def history_job(broker: Broker, clock: Clock, retention: HistoryRetention) -> Periodic:
    """The job that trims the history, also one that is no longer filled; it writes nothing where nothing is kept."""

    async def trim() -> str | None:
        if not broker.history_of(None).messages:
            return None
        count = await _trim(broker.trim_history, clock, retention)
        return counted(count, "message removed", "messages removed")

    return Periodic("history", limits.HISTORY_TRIM_SECONDS, trim, title="Trim the history", nudged=True)


def event_retention_job(broker: Broker, clock: Clock, retention: EventRetention) -> Periodic:
    """The job that removes events."""

    async def trim() -> str:
        count = await _trim(broker.trim_events, clock, retention)
        return counted(count, "event removed", "events removed")

    return Periodic("events", limits.EVENTS_TRIM_SECONDS, trim, title="Remove old events")


async def _trim(
    step: Callable[[int, int], Awaitable[Removed]], clock: Clock, retention: HistoryRetention | EventRetention
) -> int:
    """Remove what is to go, one commit a step, between which other calls are served; returns how many that were."""
    count, more = 0, True
    while more:
        before_ms = clock.now_ms() - retention.hours * limits.HOUR_MS
        removed = await step(before_ms, retention.mib_max * limits.MIB)
        count, more = count + removed.count, removed.more
    return count
