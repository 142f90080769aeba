"""When access tokens were last used is kept in memory and stored now and then: no request writes for being let in."""

from forq_trio.broker.broker import Broker
from forq_trio.jobs.periodic import Periodic
from forq_trio.model import limits


def token_uses_job(broker: Broker) -> Periodic:
    """Store what was used since the last time; where nothing was, the database is left alone."""
    return Periodic("tokens.uses", limits.TOKEN_USE_SAVE_SECONDS, broker.save_token_uses)
