"""The gauges of an outbox that is relayed beside the broker, in the same process."""

from collections.abc import Iterator

from forq_trio.model.outboxes.gauges import OUTBOX_GAUGES, RelayBacklog
from forq_trio.telemetry.families import Family, gauge


class OutboxGauges:
    """What waits in the outbox that is relayed beside the broker. backlog: None where none is."""

    def __init__(self) -> None:
        self.backlog: RelayBacklog | None = None

    def families(self) -> Iterator[Family]:
        """As of the relay's latest read."""
        backlog = self.backlog
        for each in OUTBOX_GAUGES:
            yield gauge(each.name, each.meaning, None if backlog is None else each.value(backlog))
