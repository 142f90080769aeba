"""The values of a queue's settings that are more than a number or a name."""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from forq_trio.model import limits

NO_DEAD_LETTERS = ""
"""The name that stands for no dead-letter queue: failed and expired messages are deleted."""


class Defaults(Struct, frozen=True, gc=False):
    """The server-wide defaults of rules; all times in milliseconds."""

    queue_ttl_ms: int = limits.QUEUE_TTL_HOURS_DEFAULT * limits.HOUR_MS
    dlq_ttl_ms: int = limits.DLQ_TTL_HOURS_DEFAULT * limits.HOUR_MS
    attempts_max: int = limits.ATTEMPTS_MAX_DEFAULT
    backoff_ms: tuple[int, ...] = limits.BACKOFF_MS


def _from_to(low: float, high: float, meaning: str) -> Any:
    """Documents a number and its range, both ends included; `check_change` enforces it."""
    return Meta(description=meaning, extra_json_schema={"minimum": low, "maximum": high})


class Overflow(StrEnum):
    """What a send to a full queue does: fail, or evict the oldest ready message of the lowest priority."""

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"


class Expiry(StrEnum):
    """What becomes of a message that expires: it moves to the dead-letter queue, or is deleted."""

    DEAD_LETTER = "dead_letter"
    DELETE = "delete"


class Order(StrEnum):
    """Which message of a priority comes first: the oldest, the newest, or the one that was due first."""

    FIFO = "fifo"
    LIFO = "lifo"
    DUE = "due"


class GroupOrder(StrEnum):
    """What a claim waits for in a group.

    FAIR: for nothing but the limits; messages of a group are claimed in order. STRICT: for the earlier messages of the
    group, while one of them is in process or waits for its next attempt.
    """

    FAIR = "fair"
    STRICT = "strict"


class ExponentialBackOff(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A delay that grows: initialMs x factor^(attempt - 1), at most maxMs, shortened by up to `jitter` of itself.

    The share is computed from the message and its attempt, so that messages which failed together do not come back
    together.
    """

    initial_ms: Annotated[int, _from_to(1, limits.NACK_DELAY_MS_MAX, "The delay after the first attempt.")]
    factor: Annotated[float, _from_to(1, limits.BACKOFF_FACTOR_MAX, "Growth from attempt to attempt.")] = 2.0
    max_ms: Annotated[
        int, _from_to(1, limits.NACK_DELAY_MS_MAX, "The longest delay, at least `initialMs`.")
    ] = limits.HOUR_MS
    jitter: Annotated[
        float, _from_to(0, 1, "The share of the delay that is random: 0 for none, 1 for the whole delay.")
    ] = 0.0


BackOff = (
    Annotated[
        tuple[Annotated[int, _from_to(0, limits.NACK_DELAY_MS_MAX, "In milliseconds.")], ...],
        Meta(
            description="The delay after each attempt; the last one for all later attempts.",
            extra_json_schema={"minItems": 1, "maxItems": limits.BACKOFF_STEPS_MAX},
        ),
    ]
    | ExponentialBackOff
)
"""Delays in ms by attempt, the last one for all later attempts; or a formula."""


class RatePer(StrEnum):
    """What a rate is for: all messages of the queue, or those of each group."""

    QUEUE = "queue"
    GROUP = "group"


class Rate(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A bucket of `count` tokens, refilled evenly within `periodMs`; a delivery takes one.

    Within any time t at most count + t x count / periodMs messages are delivered.
    """

    count: Annotated[int, _from_to(1, limits.RATE_COUNT_MAX, "How many messages are delivered a period.")]
    period_ms: Annotated[int, _from_to(1, limits.RATE_PERIOD_MS_MAX, "The period, in milliseconds.")]
    # one bucket for the queue, or one for each group; messages without a group take none then
    per: RatePer = RatePer.QUEUE

    def turn_ms(self, place: int, full_at_ms: int, now_ms: int) -> int:
        """In how many ms the `place`th token (from 1) comes into a bucket that is full again at `full_at_ms`."""
        empty_ms = max(full_at_ms, now_ms) - now_ms - self.period_ms
        return max(0, empty_ms + -(-place * self.period_ms // self.count))

    def holds(self, ready: int, held: int, full_at_ms: int, now_ms: int) -> int:
        """How many messages wait for this rate: ready ones without a token, or held ones of groups."""
        if self.per is RatePer.GROUP:
            return held
        filled_ms = self.period_ms - max(0, full_at_ms - now_ms)
        return max(0, ready - max(0, filled_ms * self.count // self.period_ms))
