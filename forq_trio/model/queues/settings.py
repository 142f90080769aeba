"""The settings of one queue, each declared once.

A setting is an annotated type (`LeaseMs`): its range, default and meaning are in its `Setting`, and a member of that
type in each of the four classes below makes it known. What is valid (`setting_checks`), the API's document, the options
of `forq queue set`, the form and the words of the admin UI and docs/reference/queues.md follow from `SETTINGS`.

`QueueSettings` has what was set (None: the default), `SettingsChange` changes some of them, and `QueueRules` are the
settings with the defaults filled in. A queue without settings has rules, too, and nothing is stored for it.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.declared import Declared, ValueKind, documented, members_declared
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.queues.names import DLQ_SUFFIX, is_dead_letter_queue, is_lifo_queue

NO_DEAD_LETTERS = ""
"""The name that stands for no dead-letter queue: failed and expired messages are deleted."""


class FormSection(StrEnum):
    """The section of the admin UI's form in which a setting is."""

    DELIVERY = "Delivery"
    SENDS = "Messages that are sent from now on"
    BOUNDS = "Bounds and dead letters"


class Defaults(Struct, frozen=True, gc=False):
    """The server-wide defaults of rules; all times in milliseconds."""

    queue_ttl_ms: int = limits.QUEUE_TTL_HOURS_DEFAULT * limits.HOUR_MS
    dlq_ttl_ms: int = limits.DLQ_TTL_HOURS_DEFAULT * limits.HOUR_MS
    attempts_max: int = limits.ATTEMPTS_MAX_DEFAULT
    backoff_ms: tuple[int, ...] = limits.BACKOFF_MS


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


def _dead_letter_queue(queue: str, defaults: Defaults) -> str:
    return NO_DEAD_LETTERS if is_dead_letter_queue(queue) else queue + DLQ_SUFFIX


def _from_to(low: float, high: float, meaning: str) -> Any:
    """Documents a number and its range, both ends included; `check_change` enforces it."""
    return Meta(description=meaning, extra_json_schema={"minimum": low, "maximum": high})


class Overflow(StrEnum):
    """What a send to a full queue does: fail, or evict the oldest ready message of the lowest priority."""

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"


class Order(StrEnum):
    """Which message of a priority comes first: the oldest, the newest, or the one that was due first."""

    FIFO = "fifo"
    LIFO = "lifo"
    DUE = "due"


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
            default=_dead_letter_queue,
            default_text="the queue's name with `-dlq`; of a dead-letter queue none",
            section=FormSection.BOUNDS,
            phrase="dead letters to {}",
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

OF_TABLES = ("lease_ms", "max_attempts")
"""The settings that a queue bound to a table may have."""


class QueueTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of an application to which a queue is bound; its rows are the queue's messages."""

    layout: Literal["pgq"]  # whose columns it has: those of Go's pgq
    table: str  # its name, one identifier in the current schema


class QueueSettings(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The settings of a queue, as they were set."""

    lease_ms: int | None = None  # of a receive that names none
    delay_ms: int | None = None  # before a message can be received
    ttl_ms: int | None = None  # from when a message is due
    max_attempts: int | None = None  # before a message fails
    back_off: BackOff | None = None  # after a failed attempt
    dead_letter_queue: str | None = None  # empty for none
    deduplication_window_ms: int | None = None  # how long ids are remembered
    max_messages: int | None = None  # in whatever state
    max_bytes: int | None = None  # of content and attributes
    overflow: Overflow | None = None  # what a send to a full queue does
    order: Order | None = None  # of messages of a priority
    group_in_flight_max: int | None = None  # of one group
    in_flight_max: int | None = None  # of the queue
    rate: Rate | None = None  # of deliveries
    paused: bool = False  # only a pause changes it
    table: QueueTable | None = None  # only a binding changes it

    def reset(self) -> "QueueSettings":
        """The default settings, but with the same pause and table, which are not settings."""
        return QueueSettings(paused=self.paused, table=self.table)

    def changed(self, change: "SettingsChange") -> "QueueSettings":
        """These settings after `change`."""
        given = msgspec.structs.asdict(change).items()
        return replace(self, **{name: value for name, value in given if value is not UNSET})


class SettingsChange(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A change of settings: absent members stay as they are, null resets to the default."""

    lease_ms: LeaseMs | UnsetType | None = UNSET
    delay_ms: DelayMs | UnsetType | None = UNSET
    ttl_ms: TtlMs | UnsetType | None = UNSET
    max_attempts: MaxAttempts | UnsetType | None = UNSET
    back_off: BackOffOrNone = UNSET
    dead_letter_queue: DeadLetterQueue | UnsetType | None = UNSET
    deduplication_window_ms: WindowMs | UnsetType | None = UNSET
    max_messages: MaxMessages | UnsetType | None = UNSET
    max_bytes: MaxBytes | UnsetType | None = UNSET
    overflow: WhenFull | UnsetType | None = UNSET
    order: InOrder | UnsetType | None = UNSET
    group_in_flight_max: GroupInFlightMax | UnsetType | None = UNSET
    in_flight_max: InFlightMax | UnsetType | None = UNSET
    rate: RateOrNone = UNSET


class SettingsOptions(TypedDict, total=False):
    """The members of a change as keywords of `configure`: an absent one is not changed, None resets to the default."""

    lease_ms: int | None
    delay_ms: int | None
    ttl_ms: int | None
    max_attempts: int | None
    back_off: BackOff | None
    dead_letter_queue: str | None
    deduplication_window_ms: int | None
    max_messages: int | None
    max_bytes: int | None
    overflow: Overflow | Literal["reject", "drop_oldest", "dead_letter"] | None
    order: Order | Literal["fifo", "lifo", "due"] | None
    group_in_flight_max: int | None
    in_flight_max: int | None
    rate: Rate | None


class QueueRules(Struct, frozen=True, kw_only=True, rename="camel"):
    """The rules of a queue: its settings, with the defaults where nothing was set.

    Members that an older server does not know have a default, for its clients.
    """

    lease_ms: int  # of a receive that names none
    delay_ms: int  # before a message can be received
    ttl_ms: int  # from when a message is due
    max_attempts: int  # before a message fails
    back_off: BackOff  # after a failed attempt
    dead_letter_queue: str  # empty for none: what fails or expires is deleted
    deduplication_window_ms: int  # how long ids are remembered
    max_messages: int | None  # null for no bound
    max_bytes: int | None  # of content and attributes; null for no bound
    # what a send to a full queue does: fail (`reject`), or evict the oldest ready message of the lowest
    # priority
    overflow: Overflow
    # of a priority: the oldest first (`fifo`), the newest (`lifo`), or the one that was due first (`due`)
    order: Order
    group_in_flight_max: int | None  # null for no bound
    in_flight_max: int | None = None  # null for no bound
    rate: Rate | None = None  # null for no bound
    paused: bool  # nothing is delivered until the queue is resumed

    @property
    def queue_rate(self) -> Rate | None:
        """The rate, if it is for the whole queue; else None."""
        return self.rate if self.rate is not None and self.rate.per is RatePer.QUEUE else None

    @property
    def group_rate(self) -> Rate | None:
        """The rate, if it is for each group; else None."""
        return self.rate if self.rate is not None and self.rate.per is RatePer.GROUP else None


SETTINGS = members_declared(SettingsChange, Setting)
"""All settings by name, in the order in which people see them."""

InvalidSetting.declare_members(
    {
        name: (f"bad_request.settings.{name}", f"The setting {name} is not valid; `message` says why.")
        for name in (each.json_name for each in SETTINGS.values() if each.kind is not ValueKind.WORD)
    }
)


def rules_of(queue: str, settings: QueueSettings | None, defaults: Defaults) -> QueueRules:
    """The rules of `queue`. settings: None for none."""
    filled = {name: setting.default(queue, defaults) for name, setting in SETTINGS.items()}
    filled["paused"] = False
    if settings is not None:
        given = msgspec.structs.asdict(settings)
        given.pop("table")
        filled.update({name: value for name, value in given.items() if value is not None})
    return QueueRules(**filled)
