"""Retention: removes the oldest lifecycle events once they are too old, or too many bytes."""

from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits
from forq_trio.model.clock import Clock


class EventRetention(Struct, frozen=True):
    """For how many hours events stay, and how many MiB of them."""

    hours: int = limits.EVENTS_HOURS_DEFAULT
    mib_max: int = limits.EVENTS_MIB_DEFAULT


def event_retention_job(broker: Broker, clock: Clock, retention: EventRetention) -> Periodic:
    """The job that removes what is to go, one commit a step, between which other calls are served."""

    async def trim() -> str:
        count, more = 0, True
        while more:
            before_ms = clock.now_ms() - retention.hours * limits.HOUR_MS
            trimmed = await broker.trim_events(before_ms, retention.mib_max * limits.MIB)
            count, more = count + trimmed.count, trimmed.more
        return counted(count, "event removed", "events removed")

    return Periodic("events", limits.EVENTS_TRIM_SECONDS, trim, title="Remove old events")
