"""Upkeep of the database: hourly statistics (F13)."""

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic

OPTIMIZE_INTERVAL_SECONDS = 60 * 60.0


def optimize_job(broker: Broker) -> Periodic:
    """The job that refreshes the database's statistics once an hour, on the write connection."""

    async def optimize() -> str:
        await broker.optimize()
        return "up to date"

    return Periodic("optimize", OPTIMIZE_INTERVAL_SECONDS, optimize, title="Refresh statistics")
