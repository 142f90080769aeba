"""What goes over the wire, as typed values. All times are milliseconds since the Unix epoch."""

from typing import Literal, TypedDict

from msgspec import Struct

DEFAULT_URL = "http://localhost:8080"
WAIT_MS_MAX = 30_000
PRIORITY_MAX = 1_000
PRIORITY_DEFAULT = 100
PRODUCE_BATCH_MAX = 1_000
PRODUCE_BATCH_BYTES_MAX = 4 * 1024 * 1024
RECEIVE_BATCH_MAX = 100
RECEIPTS_BATCH_MAX = 1_000


class NewMessage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A message to send. None in a member leaves it to the queue.

    process_after: when it falls due (epoch ms); delay_ms: how long from now; at most one of them may be given.
    priority: 0-1,000, higher comes first, 100 unless given. ttl_ms: how long it lives from when it falls due.
    attributes: up to 10 pairs of text that travel with it. deduplication_id: a second message with the same id
    within `deduplication_window_ms` is not stored, its sender is answered with the first. group: messages of one
    group keep their order, and groups take turns. max_attempts: deliveries before it fails; dead_letter_queue: where
    it goes then, or when it expires ("": it is deleted).
    """

    content: str
    process_after: int | None = None
    delay_ms: int | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    attributes: dict[str, str] | None = None
    deduplication_id: str | None = None
    deduplication_window_ms: int | None = None
    group: str | None = None
    max_attempts: int | None = None
    dead_letter_queue: str | None = None


class MessageOptions(TypedDict, total=False):
    """The members of `NewMessage` besides its content, as keywords of `produce`."""

    process_after: int | None
    delay_ms: int | None
    priority: int | None
    ttl_ms: int | None
    attributes: dict[str, str] | None
    deduplication_id: str | None
    deduplication_window_ms: int | None
    group: str | None
    max_attempts: int | None
    dead_letter_queue: str | None


class Produced(Struct, frozen=True):
    """A stored message. `sequence` grows strictly in order of arrival and is never used twice.

    duplicate: True when the deduplication id was known, and `id` and `sequence` are those of the first message.
    """

    id: str
    sequence: int
    duplicate: bool = False


class Rejected(Struct, frozen=True):
    """A message of a batch that was not stored, and the API's code for the reason. field: the member it is about."""

    code: str
    field: str | None = None


class Delivery(Struct, frozen=True, rename="camel"):
    """A message that is ours until `lease_until`. `attempts` counts this delivery; `receipt` settles it.

    first_received_at: when it was handed to a consumer for the first time.
    """

    id: str
    content: str
    receipt: str
    attempts: int
    sequence: int
    received_at: int
    lease_until: int
    priority: int
    first_received_at: int
    attributes: dict[str, str] = {}
    group: str | None = None


class ReceiptResult(Struct, frozen=True, rename="camel"):
    """What became of one receipt. code: why it was refused; lease_until: the new end, after `extend`."""

    receipt: str
    ok: bool
    code: str | None = None
    lease_until: int | None = None


class QueueInfo(Struct, frozen=True, rename="camel"):
    """A queue's messages by status, and how many consumers wait for one.

    held: those that wait because as many of their group are in process as may be. bytes: of content and attributes.
    oldest_ready_age_ms: None where nothing is ready, and in the list of all queues.
    """

    queue: str
    is_dlq: bool
    ready: int
    delayed: int
    processing: int
    failed: int
    waiting: int = 0
    oldest_ready_age_ms: int | None = None
    held: int = 0
    bytes: int = 0
    paused: bool = False

    @property
    def total(self) -> int:
        """All of its messages."""
        return self.ready + self.delayed + self.processing + self.failed + self.held


class Failure(Struct, frozen=True):
    """One failed attempt: its number, when it ended and the reason given, None if there was none."""

    attempt: int
    at: int
    reason: str | None = None


class MessageInfo(Struct, frozen=True, rename="camel"):
    """A stored message as one looks at it, without touching it.

    failures: its latest failed attempts. failure_reason, source_queue, source_attempts, dead_lettered_at: of a dead
    letter, why it is one, where it came from, after how many attempts and when.
    """

    id: str
    queue: str
    sequence: int
    status: Literal["ready", "processing", "failed", "delayed", "held"]
    content: str
    attempts: int
    priority: int
    received_at: int
    process_after: int
    updated_at: int
    expires_after: int
    processing_started_at: int | None = None
    lease_until: int | None = None
    failure_reason: str | None = None
    source_queue: str | None = None
    last_error: str | None = None
    attributes: dict[str, str] | None = None
    group: str | None = None
    first_received_at: int | None = None
    max_attempts: int | None = None
    ttl_ms: int | None = None
    dead_letter_queue: str | None = None
    dead_lettered_at: int | None = None
    source_attempts: int | None = None
    failures: tuple[Failure, ...] = ()
    bytes: int = 0
