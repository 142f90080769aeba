"""An example of each setting of a queue: every test that sets all of them takes them from here."""

from typing import Any, NamedTuple

from forq_trio.model.queues.setting_values import (
    Expiry,
    ExponentialBackOff,
    GroupOrder,
    Order,
    Overflow,
    Rate,
    RatePer,
)


class Example(NamedTuple):
    """value: what is set, which is not the default; typed: the same as `forq queue set` takes and `show` prints it.

    default: what `show` prints without it, with {queue} for the name. drawn: values that random tests take, small
    enough to matter there; None for the default.
    """

    value: Any
    typed: str
    default: str
    drawn: tuple[Any, ...]


EXAMPLES = {
    "lease_ms": Example(90_000, "90s", "5m", (None, 0, 1_000)),
    "delay_ms": Example(1_500, "1500ms", "0s", (None, 0, 1_000)),
    "ttl_ms": Example(604_800_000, "7d", "1d", (None, 1_000, 50_000)),
    "max_attempts": Example(7, "7", "5", (None, 1, 2)),
    "back_off": Example(
        ExponentialBackOff(initial_ms=1_500, factor=1.5, max_ms=60_000, jitter=0.25),
        "initial=1500ms,factor=1.5,max=1m,jitter=0.25",
        "1s,5s,15s,30s,1m",
        (None, (1, 1_000), ExponentialBackOff(10, 3.0, 500, 0.5)),
    ),
    "dead_letter_queue": Example("graveyard", "graveyard", "{queue}-dlq", (None, "", "x", "a", "a-dlq")),
    "expiry": Example(Expiry.DELETE, "delete", "dead-letter", (None, *Expiry)),
    "deduplication_window_ms": Example(3_600_000, "1h", "5m", (None, 1)),
    "max_messages": Example(100_000, "100000", "no limit", (None, 2, 4)),
    "max_bytes": Example(10_485_760, "10MiB", "no limit", (None, 6, 30)),
    "overflow": Example(Overflow.DROP_OLDEST, "drop-oldest", "reject", (None, *Overflow)),
    "order": Example(Order.LIFO, "lifo", "fifo", (None, None, *Order)),
    "group_in_flight_max": Example(8, "8", "no limit", (None, 1, 1, 2)),
    "group_order": Example(GroupOrder.STRICT, "strict", "fair", (None, None, *GroupOrder)),
    "in_flight_max": Example(20, "20", "no limit", (None, 1, 2, 5)),
    "rate": Example(
        Rate(count=10, period_ms=1_000, per=RatePer.GROUP),
        "10/s/group",
        "no limit",
        (None, Rate(1, 3), Rate(2, 7), Rate(1, 5, RatePer.GROUP), Rate(3, 1_000, RatePer.GROUP)),
    ),
}
EVERYTHING: dict[str, Any] = {name: example.value for name, example in EXAMPLES.items()}
