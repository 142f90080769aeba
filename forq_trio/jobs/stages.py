"""Ends stages that were not published within a day of their last page; the writer then removes them bit by bit."""

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits


def stages_job(broker: Broker) -> Periodic:
    """The job that ends stages; where there is none it asks the writer nothing."""

    async def end() -> str:
        ended = step = await broker.end_stages() if broker.staging().stages else 0
        while step == limits.STAGES_ENDED_MAX:
            step = await broker.end_stages()
            ended += step
        return counted(ended, "stage", "stages")

    return Periodic("stages", limits.STAGES_LOOK_SECONDS, end, title="End stages that were not published")
