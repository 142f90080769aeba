"""The gauges of an outbox that is relayed beside the broker, in the same process."""

from collections.abc import Iterator
from typing import Protocol

from forq_trio.telemetry.families import Family, gauge


class RelayBacklog(Protocol):
    """What a relay knows of its outbox; see `outbox.backlog`."""

    waiting: int

    @property
    def oldest_seconds(self) -> float: ...


class OutboxGauges:
    """What waits in the outbox that is relayed beside the broker. backlog: None where none is."""

    def __init__(self) -> None:
        self.backlog: RelayBacklog | None = None

    def families(self) -> Iterator[Family]:
        """As of the relay's latest read."""
        backlog = self.backlog
        yield gauge(
            "forq_outbox_waiting",
            "Messages that are committed in the outbox of this process and not relayed; none where it relays none.",
            None if backlog is None else backlog.waiting,
        )
        yield gauge(
            "forq_outbox_waiting_seconds",
            "For how long the oldest of them has waited, as far as this process has seen; 0 without one.",
            None if backlog is None else backlog.oldest_seconds,
        )
