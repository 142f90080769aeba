"""The depth gauge (F13): refreshed every 30 s from the writer's own counts, so it costs the database nothing."""

from collections.abc import Callable, Mapping

from forq_trio.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.model import QueueCounts

DEPTH_INTERVAL_SECONDS = 30.0


def depth_job(broker: Broker, refresh: Callable[[Mapping[str, QueueCounts]], None]) -> Periodic:
    """Hand the counts to `refresh` now and every 30 s."""

    async def work() -> None:
        refresh(broker.counts())

    return Periodic("metrics.depth", DEPTH_INTERVAL_SECONDS, work, nudged=True)
