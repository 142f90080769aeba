"""Ends the leases of consumers that are idle, drops the pages that they keep, and ends what interrupted calls left."""

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits


def consumers_job(broker: Broker) -> Periodic:
    """The job; without such consumers it writes nothing."""

    async def settle() -> str:
        return counted(await broker.settle_unused(), "lease ended", "leases ended")

    return Periodic("consumers", limits.CONSUMER_JOB_SECONDS, settle, title="End leases of unused consumers")
