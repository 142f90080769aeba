"""The settings of one queue, and the rules that follow from them.

`QueueSettings` has what was set (None: the default), `SettingsChange` changes some of them, and `QueueRules` are the
settings with the defaults filled in. A queue without settings has rules, too, and nothing is stored for it.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from forq_trio.model import limits
from forq_trio.model.errors import InvalidQueueName, InvalidRequest, InvalidSetting
from forq_trio.model.messages import check_queue_name, json_name

NO_DEAD_LETTERS = ""
"""The name of a dead-letter queue that says that there is none: failed and expired messages are deleted."""


class Overflow(StrEnum):
    """What a send to a full queue does: fail, or evict the oldest ready message of the lowest priority."""

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"
    DEAD_LETTER = "dead_letter"


class Order(StrEnum):
    """Which message of a priority comes first: the oldest or the newest."""

    FIFO = "fifo"
    LIFO = "lifo"


def _from_to(low: float, high: float, meaning: str) -> Any:
    """Documents a number and its range, both ends included; `check_change` enforces it."""
    return Meta(description=meaning, extra_json_schema={"minimum": low, "maximum": high})


class ExponentialBackOff(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A delay that grows: initial_ms x factor^(attempt - 1), at most max_ms, shortened by up to `jitter` of itself.

    jitter: 0 for none, 1 for the whole delay. The share is computed from the message and its attempt, so that
    messages which failed together do not come back together.
    """

    initial_ms: Annotated[int, _from_to(1, limits.NACK_DELAY_MS_MAX, "The delay after the first attempt.")]
    factor: Annotated[float, _from_to(1, limits.BACKOFF_FACTOR_MAX, "Growth from attempt to attempt.")] = 2.0
    max_ms: Annotated[int, _from_to(1, limits.NACK_DELAY_MS_MAX, "The longest delay.")] = limits.HOUR_MS
    jitter: Annotated[float, _from_to(0, 1, "The share of the delay that is random.")] = 0.0


BackOff = tuple[int, ...] | ExponentialBackOff
"""Delays in ms by attempt, the last one for all later attempts; or a formula."""

LeaseMs = Annotated[
    int, _from_to(0, limits.LEASE_MS_MAX, "How long a lease is if the receive names no length.")
]
DelayMs = Annotated[
    int, _from_to(0, limits.DELAY_MS_MAX, "How long a message waits before it can be received.")
]
TtlMs = Annotated[int, _from_to(1, limits.TTL_MS_MAX, "How long a message lives from when it falls due.")]
MaxAttempts = Annotated[int, _from_to(1, limits.MAX_ATTEMPTS_MAX, "Deliveries before a message fails.")]
DeadLetterQueue = Annotated[
    str, Meta(description="Where messages go that fail or expire; empty: they are deleted.")
]
WindowMs = Annotated[
    int, _from_to(1, limits.DEDUPLICATION_WINDOW_MS_MAX, "How long a deduplication id is remembered.")
]
MaxMessages = Annotated[
    int, _from_to(1, limits.QUEUE_MESSAGES_MAX, "How many messages the queue takes, in whatever state.")
]
MaxBytes = Annotated[
    int, _from_to(1, limits.QUEUE_BYTES_MAX, "How many bytes of content and attributes the queue takes.")
]
GroupInFlight = Annotated[
    int, _from_to(1, limits.GROUP_IN_FLIGHT_MAX, "How many messages of one group may be in process at once.")
]


class QueueSettings(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The settings of a queue; None for the default. paused: changed by Pause alone."""

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

    def changed(self, change: "SettingsChange") -> "QueueSettings":
        """These settings after `change`."""
        changed = {
            name: value for name, value in msgspec.structs.asdict(change).items() if value is not UNSET
        }
        return msgspec.structs.replace(self, **changed)


class SettingsChange(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to change: absent members stay as they are, null goes back to the default."""

    lease_ms: LeaseMs | UnsetType | None = UNSET
    delay_ms: DelayMs | UnsetType | None = UNSET
    ttl_ms: TtlMs | UnsetType | None = UNSET
    max_attempts: MaxAttempts | UnsetType | None = UNSET
    back_off: BackOff | UnsetType | None = UNSET
    dead_letter_queue: DeadLetterQueue | UnsetType | None = UNSET
    deduplication_window_ms: WindowMs | UnsetType | None = UNSET
    max_messages: MaxMessages | UnsetType | None = UNSET
    max_bytes: MaxBytes | UnsetType | None = UNSET
    overflow: Overflow | UnsetType | None = UNSET
    order: Order | UnsetType | None = UNSET
    group_in_flight_max: GroupInFlight | UnsetType | None = UNSET


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
    order: Order | Literal["fifo", "lifo"] | None
    group_in_flight_max: int | None


class QueueRules(Struct, frozen=True, kw_only=True, rename="camel"):
    """The rules of a queue: its settings, with the defaults where nothing was set.

    dead_letter_queue: "" for none. max_messages, max_bytes, group_in_flight_max: None for no bound.
    """

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


_RANGES: dict[str, tuple[int, int]] = {
    "lease_ms": (0, limits.LEASE_MS_MAX),
    "delay_ms": (0, limits.DELAY_MS_MAX),
    "ttl_ms": (1, limits.TTL_MS_MAX),
    "max_attempts": (1, limits.MAX_ATTEMPTS_MAX),
    "deduplication_window_ms": (1, limits.DEDUPLICATION_WINDOW_MS_MAX),
    "max_messages": (1, limits.QUEUE_MESSAGES_MAX),
    "max_bytes": (1, limits.QUEUE_BYTES_MAX),
    "group_in_flight_max": (1, limits.GROUP_IN_FLIGHT_MAX),
}


def read_change(changes: SettingsOptions) -> SettingsChange:
    """The change that these keywords name.

    Raises InvalidRequest for a value of another type than its setting's, and TypeError for a name that is no setting.
    """
    given = SettingsChange(**cast("Any", changes))
    try:
        return msgspec.convert(msgspec.to_builtins(given), SettingsChange)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None


def invalid_setting(member: str, problem: str) -> InvalidSetting:
    """The error about one setting, by its name in JSON."""
    return InvalidSetting(f"{member}: {problem}", field=member)


def check_change(queue: str, change: SettingsChange) -> SettingsChange:
    """Return `change`, or raise InvalidSetting naming the member that is out of range, by its name in JSON."""
    for name, (low, high) in _RANGES.items():
        value = getattr(change, name)
        if value is not UNSET and value is not None:
            _check(name, value, low, high)
    if change.back_off is not UNSET and change.back_off is not None:
        _check_back_off(change.back_off)
    target = change.dead_letter_queue
    if target is not UNSET and target:
        try:
            check_queue_name(target)
        except InvalidQueueName as error:
            raise invalid_setting("deadLetterQueue", str(error)) from None
        if target == queue:
            raise invalid_setting("deadLetterQueue", "it must be another queue")
    return change


def _check_back_off(back_off: BackOff) -> None:
    if isinstance(back_off, tuple):
        _check("backOff", len(back_off), 1, limits.BACKOFF_STEPS_MAX, "its length")
        for step_ms in back_off:
            _check("backOff", step_ms, 0, limits.NACK_DELAY_MS_MAX, "each delay")
        return
    _check("backOff", back_off.initial_ms, 1, limits.NACK_DELAY_MS_MAX, "initialMs")
    _check("backOff", back_off.factor, 1, limits.BACKOFF_FACTOR_MAX, "factor")
    _check("backOff", back_off.max_ms, back_off.initial_ms, limits.NACK_DELAY_MS_MAX, "maxMs")
    _check("backOff", back_off.jitter, 0, 1, "jitter")


def _check(name: str, value: float, low: float, high: float, what: str = "it") -> None:
    if not low <= value <= high:
        raise invalid_setting(json_name(name), f"{what} must be between {low} and {high}, not {value}")
