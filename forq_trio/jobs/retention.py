"""Retention: removes finished messages and lifecycle events once they are too old, or too many bytes.

Too many bytes are noticed with the commit that stores them: the sums are known without a query. Then the job removes
them step by step, between which others are served; the further they are above the bound, the longer is a step
(`rules.retention_steps`), so that more go than come.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.logs import LogName
from forq_trio.storage.engine import Snapshot


class Retention(Struct, frozen=True):
    """For how many hours what is in a log stays, and how many MiB of it in all."""

    hours: int = limits.RETENTION_HOURS_DEFAULT
    mib_max: int = limits.RETENTION_MIB_DEFAULT


class BytesWatch:
    """Nudges the jobs that trim the logs when there are more bytes than their bounds by some.

    So few bytes above a bound are never worth a commit. It is called after each commit, so it does little.
    """

    def __init__(
        self, snapshot: Callable[[], Snapshot], watched: Mapping[LogName, tuple[Periodic, Retention]]
    ) -> None:
        self._snapshot = snapshot
        self._watched = [(log, job, _with_slack(each.mib_max)) for log, (job, each) in watched.items()]

    def look(self) -> None:
        logs = self._snapshot().logs
        for log, job, bytes_max in self._watched:
            if logs[log].bytes > bytes_max:
                job.nudge()


def _with_slack(mib_max: int) -> int:
    bytes_max = mib_max * limits.MIB
    return bytes_max + bytes_max // limits.RETENTION_SLACK_SHARE


_JOBS: Mapping[LogName, tuple[str, str, float]] = {
    "events": ("Remove old events", "event", limits.EVENTS_TRIM_SECONDS),
    "history": ("Trim the history", "message", limits.HISTORY_TRIM_SECONDS),
}
"""The title of the job of each log, what it removes, and how often."""


def retention_job(broker: Broker, clock: Clock, log: LogName, retention: Retention) -> Periodic:
    """The job that trims a log, also one that is no longer filled; it writes nothing where nothing can go."""
    title, item, seconds = _JOBS[log]

    async def trim() -> str:
        count, more = 0, True
        while more:
            before_ms = clock.now_ms() - retention.hours * limits.HOUR_MS
            removed = await broker.trim_log(log, before_ms, retention.mib_max * limits.MIB)
            count, more = count + removed.count, removed.more
        return counted(count, f"{item} removed", f"{item}s removed")

    return Periodic(log, seconds, trim, title=title, nudged=True)
