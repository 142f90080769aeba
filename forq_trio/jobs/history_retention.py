"""Removes from the history what is too old or too much, one small commit after the other."""

from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.model.clock import Clock


class HistoryRetention(Struct, frozen=True):
    """How long finished messages are kept, and how much of them in all."""

    hours: int = limits.HISTORY_HOURS_DEFAULT
    mib_max: int = limits.HISTORY_MIB_DEFAULT


def history_job(broker: Broker, clock: Clock, retention: HistoryRetention) -> Periodic:
    """The job that trims the history, also one that is no longer filled; it writes nothing where nothing is kept."""

    async def trim() -> str | None:
        count, more = 0, broker.history_of(None).messages > 0
        while more:
            finished_before = clock.now_ms() - retention.hours * limits.HOUR_MS
            trimmed = await broker.trim_history(finished_before, retention.mib_max * limits.MIB)
            count, more = count + trimmed.count, trimmed.more or trimmed.count == limits.HISTORY_STEP_MESSAGES
        return counted(count, "message removed", "messages removed") if count else None

    return Periodic("history", limits.HISTORY_TRIM_SECONDS, trim, title="Trim the history", nudged=True)
