"""The gauges of an outbox that is relayed in a process: beside an embedded broker, and in a worker."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class RelayBacklog(Protocol):
    """What a relay knows of its outbox; see `outbox.backlog`."""

    waiting: int

    @property
    def oldest_seconds(self) -> float: ...


class OutboxGauge(NamedTuple):
    """One gauge, as of the relay's latest read."""

    name: str
    meaning: str
    value: Callable[[RelayBacklog], float]


OUTBOX_GAUGES = (
    OutboxGauge(
        "forq_outbox_waiting",
        "Messages that are committed in the outbox of this process and not relayed; none where it relays none.",
        lambda backlog: backlog.waiting,
    ),
    OutboxGauge(
        "forq_outbox_waiting_seconds",
        "For how long the oldest of them has waited, as far as this process has seen; 0 without one.",
        lambda backlog: backlog.oldest_seconds,
    ),
)
