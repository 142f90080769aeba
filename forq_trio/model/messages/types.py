"""Messages as they are sent, delivered and read, and the receipt that proves a delivery.

All are immutable `msgspec.Struct`s, which are cheap to make and need no further code to become JSON. Times are
milliseconds since the Unix epoch. Columns that Forq has as well have the same meaning (contract F).
"""

import re
from enum import IntEnum
from random import getrandbits
from typing import Any, Literal, NamedTuple, Self, get_args
from zlib import crc32

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.errors import InvalidQueueName, MalformedMessageId, MalformedReceipt
from forq_trio.model.json_text import loads
from forq_trio.model.keys.types import KeyInfo, OnceMore
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.values import Count, EpochMs, Uuid

REASON_MAX_ATTEMPTS = "max_attempts_reached"
REASON_EXPIRED = "message_expired"
REASON_OVERFLOW = "queue_full"
DEAD_LETTER_REASONS = (REASON_MAX_ATTEMPTS, REASON_EXPIRED, REASON_OVERFLOW)
"""Why a message is a dead letter: there are no other reasons."""
LEASE_ENDED = "lease ended"
"""The reason of a failed attempt whose lease ended."""

_QUEUE_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{limits.QUEUE_NAME_LENGTH_MAX}}}(-dlq)?")
_PATH_STEPS = (".", "..")
_FORQS_RECEIPT = re.compile(r"[0-9]{1,15}")  # epoch ms
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


class Status(IntEnum):
    """The state of a message. 0 to 2 are Forq's; a delayed message is in no claim index until it falls due.

    HELD: it would be ready if its group were below the group limit.
    """

    READY = 0
    PROCESSING = 1
    FAILED = 2
    DELAYED = 3
    HELD = 4


def check_queue_name(name: str, field: str = "queue") -> str:
    """Return `name`, or raise InvalidQueueName about `field`. Source of the pattern: Forq 1.0.

    The suffix -dlq does not count towards the length, so that every queue's dead-letter queue has a valid name. "." and
    ".." are refused: clients and proxies take them as steps in a path, so no URL would reach such a queue.
    """
    if _QUEUE_NAME.fullmatch(name) is None or name in _PATH_STEPS:
        raise InvalidQueueName(field=field)
    return name


def is_message_id(text: str) -> bool:
    """True for a UUID, in upper or lower case."""
    return _UUID.fullmatch(text) is not None


def check_message_id(text: str) -> str:
    """Return a message id in its stored form (lower case), or raise MalformedMessageId when it is no UUID."""
    if not is_message_id(text):
        raise MalformedMessageId(field="messageId")
    return text.lower()


def token_of_forq(receipt: str) -> int | None:
    """The token of a receipt that Forq itself gave: the time of its claim (F4). None for any other text."""
    return int(receipt) if _FORQS_RECEIPT.fullmatch(receipt) else None


def receipt_text(seq: int, token: int) -> str:
    """The text form of a receipt; made for each delivery, hence in the cheapest way."""
    parts = (seq >> 16, seq & 0xFFFF, 0x8000 | token >> 48, token & 0xFFFF_FFFF_FFFF)
    return "%08x-%04x-8000-%04x-%012x" % parts  # noqa: UP031 (an f-string takes almost twice as long here)


RECEIPT_TOKEN_BITS = 62
"""The size of the token that a claim makes for each message."""
_ID_BITS = 24
_RANDOM_BITS = (
    RECEIPT_TOKEN_BITS - _ID_BITS - 1
)  # only tokens with a mark begin with 1 (storage/lease_marks.py)
_ID_MASK = (1 << _ID_BITS) - 1


def claim_token(message_id: str) -> int:
    """A token for one more claim of this message: random bits, and at the end a hash of its id.

    A sequence number can come back: after a restore, a failover, or a power cut. Then the message that has it has
    another id.
    """
    return getrandbits(_RANDOM_BITS) << _ID_BITS | crc32(message_id.encode()) & _ID_MASK


class Receipt(NamedTuple):
    """Proof of one delivery: names the message (`seq`) and the claim (`token`, new at every claim).

    Its text form is a UUID of version 8, because Forq's clients expect UUIDs.
    """

    seq: int
    token: int

    def __str__(self) -> str:
        return receipt_text(*self)

    def is_of(self, message_id: str) -> bool:
        """Whether some claim of this message may have given it; of another one, only once in 16 million times."""
        return self.token & _ID_MASK == crc32(message_id.encode()) & _ID_MASK

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form. Any UUID is accepted; a UUID that is not a receipt matches no message.

        Raises MalformedReceipt when `text` is not a UUID.
        """
        if _UUID.fullmatch(text) is None:
            raise MalformedReceipt
        number = int(text.replace("-", ""), 16)
        if number >> 62 & 0x3FFFF != 0x8000 << 2 | 0b10:  # version 8, twelve bits of ours, RFC 9562's variant
            return cls(0, 0)
        return cls(number >> 80, number & 0x3FFF_FFFF_FFFF_FFFF)


class NewMessageWithDefaultBound(NewMessage, frozen=True, gc=False):
    """A message whose sender's dialect leaves the bound on deliveries to its receivers, with a default (Sasquatch).

    default_max_receives: the bound on deliveries for claims whose redrive policy names none; None for no bound.
    """

    default_max_receives: int | None = None


class Produced(Struct, frozen=True, gc=False, omit_defaults=True):
    """The result of a send."""

    id: Uuid  # of the stored message
    sequence: int  # grows strictly in the order of arrival, and is never used twice
    # True when the deduplication id was known, and id and sequence are those of the first message
    duplicate: bool = False


class Delivery(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A claimed message. `attempts` counts this delivery; the lease ends at `lease_until` (epoch ms)."""

    id: str
    content: str
    receipt: str
    attempts: int
    sequence: int
    received_at: int
    lease_until: int
    priority: int
    first_received_at: int  # when it was first handed to a consumer (epoch ms)
    attributes: dict[str, str] = {}
    group: str | None = None
    key: str | None = None  # this and the next: of a keyed message
    kind: str = ""
    max_attempts: int | None = None  # the message's own, None for the queue's

    def json(self) -> Any:
        """The content as JSON: dicts, lists, texts, numbers, booleans, None. Raises ValueError if it is none."""
        return loads(self.content)


class Failure(Struct, frozen=True, gc=False):
    """One failed attempt."""

    attempt: int  # its number
    at: int  # when it ended (epoch ms)
    # what the consumer gave, `lease ended` if nobody settled it in time; None if none was given
    reason: str | None


class QueueCounts(Struct, frozen=True, gc=False):
    """How many messages of a queue are in each status, and the bytes of all their contents and attributes."""

    ready: int = 0
    processing: int = 0
    failed: int = 0
    delayed: int = 0
    held: int = 0
    bytes: int = 0

    @property
    def total(self) -> int:
        return self.ready + self.processing + self.failed + self.delayed + self.held


StatusName = Literal["ready", "processing", "failed", "delayed", "held"]
STATUS_NAMES: tuple[StatusName, ...] = get_args(StatusName)
"""The name of each `Status` for callers, by its number."""


class MessageInfo(Struct, frozen=True, gc=False, rename="camel"):
    """A stored message, read without changing it."""

    id: Uuid  # names the message
    queue: str  # where it is
    sequence: int  # grows in the order of arrival
    status: StatusName  # `held`: it would be ready if its group were below the group limit
    content: str  # as it was sent
    attempts: Count  # how often it was delivered
    priority: int  # messages of a higher one come first
    received_at: EpochMs  # when it was sent
    process_after: EpochMs  # when it is due
    updated_at: EpochMs  # when it last changed
    expires_after: EpochMs  # when its time to live ends
    processing_started_at: EpochMs | None = None  # since when a consumer has it; null while none has
    lease_until: EpochMs | None = None  # when that consumer's lease ends
    # of a dead letter: why it is one (`max_attempts_reached`, `message_expired`, `queue_full`)
    failure_reason: str | None = None
    source_queue: str | None = None  # of a dead letter: where it came from
    last_error: str | None = None  # the reason of its last nack
    attributes: dict[str, str] = {}  # as they were sent
    group: str | None = None  # as it was sent
    first_received_at: EpochMs | None = None  # when it was first delivered, null if it never was
    max_attempts: int | None = None  # the message's own, null where the queue's setting applies
    ttl_ms: int | None = None  # the message's own, null where the queue's setting applies
    dead_letter_queue: str | None = None  # the message's own, null where the queue's setting applies
    dead_lettered_at: EpochMs | None = None  # of a dead letter: when it became one
    source_attempts: Count | None = None  # of a dead letter: how many attempts it had where it came from
    # its latest 20 failed attempts; of a dead letter also those before an earlier redrive
    failures: tuple[Failure, ...] = ()
    bytes: Count = 0  # of content and attributes
    keyed: KeyInfo | None = None  # the key of a message that has one, or of a dead letter that had one

    @property
    def key(self) -> str | None:
        """Its key, as `Delivery` has it; None for none. `keyed` has what else is known of it."""
        return None if self.keyed is None else self.keyed.key

    @property
    def kind(self) -> str:
        """The kind of its key, as `Delivery` has it; empty for none."""
        return "" if self.keyed is None else self.keyed.kind


class KeyedMessage(Struct, frozen=True, gc=False, rename="camel"):
    """The pending message of a key, whatever its state."""

    message: MessageInfo  # as it is stored
    once_more: OnceMore | None = None  # the offer that waits behind it while it is in process; null for none


class KeyPage(Struct, frozen=True, rename="camel"):
    """A page of pending messages with a key, by kind and key."""

    messages: list[MessageInfo]  # at most 4 MiB; there may be few although there is a next page
    next: str | None = None  # the `after` of the next page; null at the end
