"""Stores now and then when access tokens and sessions were last used, so that requests need not write it."""

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import NOTHING_TO_DO, counted
from forq_trio.model import limits


def uses_job(broker: Broker) -> Periodic:
    """The job that stores the uses since the last time; without any it writes nothing."""

    async def save() -> str:
        tokens, sessions = await broker.save_uses()
        said = [counted(tokens, "token", "tokens"), counted(sessions, "session", "sessions")]
        return ", ".join(each for each in said if each != NOTHING_TO_DO) or NOTHING_TO_DO

    return Periodic("uses", limits.TOKEN_USE_SAVE_SECONDS, save, title="Save uses of tokens and sessions")
