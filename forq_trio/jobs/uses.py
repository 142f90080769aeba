"""Stores now and then when access tokens and sessions were last used, so that requests need not write it."""

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import limits


def uses_job(broker: Broker) -> Periodic:
    """The job that stores the uses since the last time; without any it writes nothing."""

    async def save() -> str:
        return counted(await broker.save_uses(), "use", "uses")

    return Periodic("uses", limits.TOKEN_USE_SAVE_SECONDS, save, title="Save uses of tokens and sessions")
