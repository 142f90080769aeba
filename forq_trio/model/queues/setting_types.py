"""The types of a queue's settings, each with its declaration: range, default and meaning."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from msgspec import UnsetType

from forq_trio.model import limits
from forq_trio.model.declared import Declared, ValueKind, documented
from forq_trio.model.queues.names import (
    default_dead_letter_queue,
    is_dead_letter_queue,
    is_fifo_queue,
    is_lifo_queue,
)
from forq_trio.model.queues.setting_values import BackOff, Defaults, Expiry, GroupOrder, Order, Overflow, Rate


class FormSection(StrEnum):
    """The section of the admin UI's form in which a setting is."""

    DELIVERY = "Delivery"
    SENDS = "Messages that are sent from now on"
    BOUNDS = "Bounds and dead letters"


class Setting(Declared, frozen=True, kw_only=True):
    """The declaration of a setting."""

    label: str  # its name in the admin UI
    section: FormSection
    default: Callable[[str, Defaults], Any]  # computes the default from the queue's name
    default_text: str | None = None  # the default in words, None if it is the same for all queues
    words: Mapping[str, str] = {}  # the values of a WORD, each with its text in the admin UI
    # the default in the admin UI's sentence about all defaults, with {} for the value; None if it is not mentioned
    phrase: str | None = None


def _fixed(value: Any) -> Callable[[str, Defaults], Any]:
    """A default that is the same for all queues."""
    return lambda queue, defaults: value


def _ttl_ms(queue: str, defaults: Defaults) -> int:
    return defaults.dlq_ttl_ms if is_dead_letter_queue(queue) else defaults.queue_ttl_ms


LeaseMs = Annotated[
    int,
    documented(
        Setting(
            label="Lease",
            meaning="How long a lease is if the receive names no length.",
            kind=ValueKind.DURATION,
            high=limits.LEASE_MS_MAX,
            default=_fixed(limits.LEASE_MS_DEFAULT),
            section=FormSection.DELIVERY,
            phrase="lease {}",
        )
    ),
]
DelayMs = Annotated[
    int,
    documented(
        Setting(
            label="Delay",
            meaning="How long a message waits before it can be received.",
            kind=ValueKind.DURATION,
            high=limits.DELAY_MS_MAX,
            default=_fixed(0),
            section=FormSection.SENDS,
            phrase="no delay",
        )
    ),
]
TtlMs = Annotated[
    int,
    documented(
        Setting(
            label="Time to live",
            meaning="How long a message lives from when it is due.",
            kind=ValueKind.DURATION,
            low=1,
            high=limits.TTL_MS_MAX,
            default=_ttl_ms,
            default_text="`FORQ_QUEUE_TTL_HOURS`; of a dead-letter queue `FORQ_DLQ_TTL_HOURS`",
            section=FormSection.SENDS,
            phrase="time to live {}",
        )
    ),
]
MaxAttempts = Annotated[
    int,
    documented(
        Setting(
            label="Attempts",
            meaning="Deliveries before a message fails.",
            kind=ValueKind.COUNT,
            low=1,
            high=limits.MAX_ATTEMPTS_MAX,
            default=lambda queue, defaults: defaults.attempts_max,
            section=FormSection.DELIVERY,
            phrase="{} attempts",
        )
    ),
]
BackOffOrNone = Annotated[
    BackOff | UnsetType | None,
    documented(
        Setting(
            label="Back-off",
            meaning="How long a message waits after a failed attempt.",
            kind=ValueKind.BACK_OFF,
            default=lambda queue, defaults: defaults.backoff_ms,
            section=FormSection.DELIVERY,
            phrase="back-off {}",
        )
    ),
]
DeadLetterQueue = Annotated[
    str,
    documented(
        Setting(
            label="Dead letters to",
            meaning="Where messages go when they fail or expire. Empty: they are deleted.",
            kind=ValueKind.QUEUE,
            default=lambda queue, defaults: default_dead_letter_queue(queue),
            default_text="the queue's name with `-dlq`; of a dead-letter queue none",
            section=FormSection.BOUNDS,
            phrase="dead letters to {}",
        )
    ),
]
WhenExpired = Annotated[
    Expiry,
    documented(
        Setting(
            label="When it expires",
            meaning="What becomes of a message that expires.",
            kind=ValueKind.WORD,
            words={Expiry.DEAD_LETTER: "move it to the dead letters", Expiry.DELETE: "delete it"},
            default=_fixed(Expiry.DEAD_LETTER),
            section=FormSection.BOUNDS,
        )
    ),
]
WindowMs = Annotated[
    int,
    documented(
        Setting(
            label="Deduplication",
            meaning="How long a deduplication id is remembered.",
            kind=ValueKind.DURATION,
            low=1,
            high=limits.DEDUPLICATION_WINDOW_MS_MAX,
            default=_fixed(limits.DEDUPLICATION_WINDOW_MS_DEFAULT),
            section=FormSection.SENDS,
            option="dedup-window",
        )
    ),
]
MaxMessages = Annotated[
    int,
    documented(
        Setting(
            label="Most messages",
            meaning="How many messages the queue takes, in whatever state.",
            kind=ValueKind.COUNT,
            low=1,
            high=limits.QUEUE_MESSAGES_MAX,
            default=_fixed(None),
            section=FormSection.BOUNDS,
        )
    ),
]
MaxBytes = Annotated[
    int,
    documented(
        Setting(
            label="Most bytes",
            meaning="How many bytes of content and attributes the queue takes.",
            kind=ValueKind.BYTES,
            low=1,
            high=limits.QUEUE_BYTES_MAX,
            default=_fixed(None),
            section=FormSection.BOUNDS,
        )
    ),
]
WhenFull = Annotated[
    Overflow,
    documented(
        Setting(
            label="When it is full",
            meaning="What a send to a full queue does.",
            kind=ValueKind.WORD,
            words={
                Overflow.REJECT: "refuse sends",
                Overflow.DROP_OLDEST: "delete the oldest",
                Overflow.DEAD_LETTER: "move the oldest to the dead letters",
            },
            default=_fixed(Overflow.REJECT),
            section=FormSection.BOUNDS,
        )
    ),
]
InOrder = Annotated[
    Order,
    documented(
        Setting(
            label="Order",
            meaning=(
                "Which message of a priority comes first: the oldest (fifo), the newest (lifo), or the one that was due"
                " first (due)."
            ),
            kind=ValueKind.WORD,
            words={
                Order.FIFO: "first in, first out",
                Order.LIFO: "last in, first out",
                Order.DUE: "by due time",
            },
            default=lambda queue, defaults: Order.LIFO if is_lifo_queue(queue) else Order.FIFO,
            default_text="`fifo`; of a queue whose name ends in `_lifo`, `lifo`",
            section=FormSection.SENDS,
            phrase="order {}",
        )
    ),
]
GroupInFlightMax = Annotated[
    int,
    documented(
        Setting(
            label="In flight, a group",
            meaning="How many messages of one group may be in process at once.",
            kind=ValueKind.COUNT,
            low=1,
            high=limits.GROUP_IN_FLIGHT_MAX,
            default=_fixed(None),
            section=FormSection.DELIVERY,
        )
    ),
]
InFlightMax = Annotated[
    int,
    documented(
        Setting(
            label="In flight, at most",
            meaning="How many messages of the queue may be in process at once.",
            kind=ValueKind.COUNT,
            low=1,
            high=limits.IN_FLIGHT_MAX,
            default=_fixed(None),
            section=FormSection.DELIVERY,
        )
    ),
]
RateOrNone = Annotated[
    Rate | UnsetType | None,
    documented(
        Setting(
            label="Rate",
            meaning="How fast messages are delivered, for the whole queue or for each group.",
            kind=ValueKind.RATE,
            default=_fixed(None),
            section=FormSection.DELIVERY,
        )
    ),
]

OrderInGroups = Annotated[
    GroupOrder,
    documented(
        Setting(
            label="Order in a group",
            meaning=(
                "Whether a message may be delivered while an earlier one of its group is in process, or waits for its"
                " next attempt (fair), or not (strict)."
            ),
            kind=ValueKind.WORD,
            words={GroupOrder.FAIR: "later ones go on", GroupOrder.STRICT: "later ones wait"},
            default=lambda queue, defaults: GroupOrder.STRICT if is_fifo_queue(queue) else GroupOrder.FAIR,
            default_text="`fair`; of a queue whose name ends in `.fifo`, always `strict`",
            section=FormSection.DELIVERY,
        )
    ),
]
