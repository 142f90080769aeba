"""The outbox that a worker relays beside its handlers."""

import os
from collections.abc import Callable
from typing import TypeVar, cast

from forq_trio.model.outboxes.gauges import OUTBOX_GAUGES
from forq_trio.outbox.backlog import Backlog
from forq_trio.outbox.relay import Relay, RelayTarget
from forq_trio.worker.source import Source

GaugeT = TypeVar("GaugeT")


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

    def metrics(self, gauge: Callable[[str, str, float], GaugeT]) -> tuple[GaugeT, ...]:
        """What waits in it, as gauges.

        gauge: makes one of its name, text and value. It is given, because only who measures a worker has the library.
        """
        return tuple(gauge(each.name, each.meaning, each.value(self.backlog)) for each in OUTBOX_GAUGES)
