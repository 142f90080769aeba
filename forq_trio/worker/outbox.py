"""The outbox that a worker relays beside its handlers."""

import os
from typing import cast

from forq_trio.outbox.backlog import Backlog
from forq_trio.outbox.relay import Relay, RelayTarget
from forq_trio.worker.source import Source


class WorkerOutbox:
    """backlog: what waits in it; nothing before the worker runs."""

    def __init__(self, database: str | os.PathLike[str]) -> None:
        self.backlog = Backlog()
        self._database = database

    def relay(self, source: Source) -> Relay:
        """A relay to what the worker is connected to. Raises TypeError for a source that no relay sends to."""
        relay = Relay(self._database, cast("RelayTarget", source))
        self.backlog = relay.backlog
        return relay
