"""What can be set for one queue: what somebody set, what holds, and a change of it. Durations are milliseconds."""

from typing import Literal, TypedDict

from msgspec import Struct

Overflow = Literal["reject", "drop_oldest", "dead_letter"]
"""What a send to a full queue does: fail, or make room with the oldest ready message of the lowest priority."""

Order = Literal["fifo", "lifo"]
"""Which message of a priority comes first: the oldest or the newest."""


class ExponentialBackOff(Struct, frozen=True, rename="camel"):
    """A delay that grows: initial_ms x factor^(attempt - 1), at most max_ms; up to `jitter` (0-1) of it is random."""

    initial_ms: int
    factor: float = 2.0
    max_ms: int = 3_600_000
    jitter: float = 0.0


BackOff = tuple[int, ...] | ExponentialBackOff
"""Delays by attempt, the last one for all later attempts; or a formula."""


class QueueSettings(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was set for a queue; None where nothing was.

    lease_ms: for how long a receive that does not say holds its messages. delay_ms, ttl_ms, max_attempts,
    dead_letter_queue ("": none), deduplication_window_ms: for messages that do not say. back_off: after a failed
    attempt. max_messages, max_bytes, overflow: how full it may become, and what then. group_in_flight_max: how many
    messages of one group may be in process at once.
    """

    lease_ms: int | None = None
    delay_ms: int | None = None
    ttl_ms: int | None = None
    max_attempts: int | None = None
    back_off: BackOff | None = None
    dead_letter_queue: str | None = None
    deduplication_window_ms: int | None = None
    max_messages: int | None = None
    max_bytes: int | None = None
    overflow: Overflow | None = None
    order: Order | None = None
    group_in_flight_max: int | None = None
    paused: bool = False


class QueueRules(Struct, frozen=True, kw_only=True, rename="camel"):
    """What holds for a queue, defaults filled in. max_messages, max_bytes, group_in_flight_max: None for no bound."""

    lease_ms: int
    delay_ms: int
    ttl_ms: int
    max_attempts: int
    back_off: BackOff
    dead_letter_queue: str
    deduplication_window_ms: int
    max_messages: int | None
    max_bytes: int | None
    overflow: Overflow
    order: Order
    group_in_flight_max: int | None
    paused: bool


class QueueConfiguration(Struct, frozen=True):
    """`settings` is what was set, `effective` what holds."""

    settings: QueueSettings
    effective: QueueRules


class SettingsChange(TypedDict, total=False):
    """The members of a change as keywords of `configure`: what is absent stays as it is, None goes to the default."""

    lease_ms: int | None
    delay_ms: int | None
    ttl_ms: int | None
    max_attempts: int | None
    back_off: BackOff | None
    dead_letter_queue: str | None
    deduplication_window_ms: int | None
    max_messages: int | None
    max_bytes: int | None
    overflow: Overflow | None
    order: Order | None
    group_in_flight_max: int | None
