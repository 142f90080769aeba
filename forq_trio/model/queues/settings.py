"""The settings of one queue, each declared once.

A setting is an annotated type (`LeaseMs`): its range, default and meaning are in its `Setting`. A member of that type
in `SettingsChange` makes it known; the other classes below, but `QueueTable`, have one of its plain type. What is valid
(`setting_checks`), the API's document, the options of `forq queue set`, the form and the words of the admin UI and
docs/reference/queues.md follow from `SETTINGS`.

`QueueSettings` has what was set (None: the default), `SettingsChange` changes some of them, and `QueueRules` are the
settings with the defaults filled in. A queue without settings has rules, too, and nothing is stored for it.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from forq_trio.model.declared import ValueKind, members_declared
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.member_names import json_name
from forq_trio.model.queues.setting_types import (
    BackOffOrNone,
    DeadLetterQueue,
    DelayMs,
    GroupInFlightMax,
    InFlightMax,
    InOrder,
    LeaseMs,
    MaxAttempts,
    MaxBytes,
    MaxMessages,
    OrderInGroups,
    RateOrNone,
    Setting,
    TtlMs,
    WhenExpired,
    WhenFull,
    WindowMs,
)
from forq_trio.model.queues.setting_values import (
    BackOff,
    Defaults,
    Expiry,
    GroupOrder,
    Order,
    Overflow,
    Rate,
    RatePer,
)
from forq_trio.model.sqs.types import SqsChange, SqsDetails
from forq_trio.model.sqs.words import QueueDetails, in_words

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
    expiry: Expiry | None = None  # what becomes of a message that expires
    deduplication_window_ms: int | None = None  # how long ids are remembered
    max_messages: int | None = None  # in whatever state
    max_bytes: int | None = None  # of content and attributes
    overflow: Overflow | None = None  # what a send to a full queue does
    order: Order | None = None  # of messages of a priority
    group_in_flight_max: int | None = None  # of one group
    group_order: GroupOrder | None = None  # whether a group waits for its earlier messages
    in_flight_max: int | None = None  # of the queue
    rate: Rate | None = None  # of deliveries
    paused: bool = False  # only a pause changes it
    table: QueueTable | None = None  # only a binding changes it
    sqs: SqsDetails | None = None  # only a client of SQS changes it

    def reset(self) -> "QueueSettings":
        """The default settings, but with the same pause, table and details, which are not settings."""
        return QueueSettings(paused=self.paused, table=self.table, sqs=self.sqs)

    def changed(self, change: "SettingsChange") -> "QueueSettings":
        """These settings after `change`."""
        return replace(self, **change.given())

    def with_details(self, change: SqsChange) -> "QueueSettings":
        """These settings with changed details."""
        return replace(self, sqs=change.applied_to(self.sqs))

    def details(self, queue: str) -> QueueDetails | None:
        """What the clients of a dialect set of this queue that is no setting; None if they set nothing."""
        return None if self.sqs is None else in_words(queue, self.sqs)


class SettingsChange(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A change of settings: absent members stay as they are, null resets to the default."""

    lease_ms: LeaseMs | UnsetType | None = UNSET
    delay_ms: DelayMs | UnsetType | None = UNSET
    ttl_ms: TtlMs | UnsetType | None = UNSET
    max_attempts: MaxAttempts | UnsetType | None = UNSET
    back_off: BackOffOrNone = UNSET
    dead_letter_queue: DeadLetterQueue | UnsetType | None = UNSET
    expiry: WhenExpired | UnsetType | None = UNSET
    deduplication_window_ms: WindowMs | UnsetType | None = UNSET
    max_messages: MaxMessages | UnsetType | None = UNSET
    max_bytes: MaxBytes | UnsetType | None = UNSET
    overflow: WhenFull | UnsetType | None = UNSET
    order: InOrder | UnsetType | None = UNSET
    group_in_flight_max: GroupInFlightMax | UnsetType | None = UNSET
    group_order: OrderInGroups | UnsetType | None = UNSET
    in_flight_max: InFlightMax | UnsetType | None = UNSET
    rate: RateOrNone = UNSET

    def given(self) -> dict[str, Any]:
        """The members that are not absent."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


class SettingsOptions(TypedDict, total=False):
    """The members of a change as keywords of `configure`: an absent one is not changed, None resets to the default."""

    lease_ms: int | None
    delay_ms: int | None
    ttl_ms: int | None
    max_attempts: int | None
    back_off: BackOff | None
    dead_letter_queue: str | None
    expiry: Expiry | Literal["dead_letter", "delete"] | None
    deduplication_window_ms: int | None
    max_messages: int | None
    max_bytes: int | None
    overflow: Overflow | Literal["reject", "drop_oldest", "dead_letter"] | None
    order: Order | Literal["fifo", "lifo", "due"] | None
    group_in_flight_max: int | None
    group_order: GroupOrder | Literal["fair", "strict"] | None
    in_flight_max: int | None
    rate: Rate | None


def change_of(changes: SettingsOptions) -> SettingsChange:
    """The change that these keywords name; a value that is a dict may have the names of Python.

    Raises TypeError for a name that is not a setting.
    """
    given = {name: _in_json(value) for name, value in changes.items()}
    return SettingsChange(**cast("Any", given))


def _in_json(value: object) -> object:
    if isinstance(value, Mapping):
        return {json_name(name): each for name, each in value.items()}
    return value


class QueueRules(Struct, frozen=True, kw_only=True, rename="camel"):
    """The rules of a queue: its settings, with the defaults where nothing was set.

    Members that came later have a default, so that a new client can read the answer of an older server.
    """

    lease_ms: int  # of a receive that names none
    delay_ms: int  # before a message can be received
    ttl_ms: int  # from when a message is due
    max_attempts: int  # before a message fails
    back_off: BackOff  # after a failed attempt
    dead_letter_queue: str  # empty for none: what fails or expires is deleted
    expiry: Expiry = (
        Expiry.DEAD_LETTER
    )  # whether a message that expires is deleted although there is one (`delete`)
    deduplication_window_ms: int  # how long ids are remembered
    max_messages: int | None  # null for no bound
    max_bytes: int | None  # of content and attributes; null for no bound
    # what a send to a full queue does: fail (`reject`), or evict the oldest ready message of the lowest
    # priority
    overflow: Overflow
    # of a priority: the oldest first (`fifo`), the newest (`lifo`), or the one that was due first (`due`)
    order: Order
    group_in_flight_max: int | None  # null for no bound
    # whether a group waits for its earlier messages while they are in process or wait for an attempt (`strict`)
    group_order: GroupOrder = GroupOrder.FAIR
    in_flight_max: int | None = None  # null for no bound
    rate: Rate | None = None  # null for no bound
    paused: bool  # nothing is delivered until the queue is resumed

    @property
    def strict_groups(self) -> bool:
        """Whether a group waits for its earlier messages."""
        return self.group_order is GroupOrder.STRICT

    @property
    def deletes_expired(self) -> bool:
        """Whether a message that expires is deleted, and is no dead letter."""
        return self.expiry is Expiry.DELETE

    @property
    def limits_groups(self) -> bool:
        """Whether messages may be held because of others of their group."""
        return self.group_in_flight_max is not None or self.group_rate is not None or self.strict_groups

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
        given.pop("sqs")
        filled.update({name: value for name, value in given.items() if value is not None})
    return QueueRules(**filled)
