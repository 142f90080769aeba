"""What goes over the wire, as typed values. All times are milliseconds since the Unix epoch."""

from typing import Literal

from msgspec import Struct

DEFAULT_URL = "http://localhost:8080"
WAIT_MS_MAX = 30_000
LEASE_MS_DEFAULT = 300_000
PRODUCE_BATCH_MAX = 1_000
PRODUCE_BATCH_BYTES_MAX = 4 * 1024 * 1024
RECEIVE_BATCH_MAX = 100
RECEIPTS_BATCH_MAX = 1_000


class NewMessage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A message to send. process_after: when it falls due; None means at once."""

    content: str
    process_after: int | None = None


class Produced(Struct, frozen=True):
    """A stored message. `sequence` grows strictly in order of arrival and is never used twice."""

    id: str
    sequence: int


class Rejected(Struct, frozen=True):
    """A message of a batch that was not stored, and the API's code for the reason."""

    code: str


class Delivery(Struct, frozen=True, rename="camel"):
    """A message that is ours until `lease_until`. `attempts` counts this delivery; `receipt` settles it."""

    id: str
    content: str
    receipt: str
    attempts: int
    sequence: int
    received_at: int
    lease_until: int


class ReceiptResult(Struct, frozen=True, rename="camel"):
    """What became of one receipt. code: why it was refused; lease_until: the new end, after `extend`."""

    receipt: str
    ok: bool
    code: str | None = None
    lease_until: int | None = None


class QueueInfo(Struct, frozen=True, rename="camel"):
    """A queue's messages by status, and how many consumers wait for one.

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


class MessageInfo(Struct, frozen=True, rename="camel"):
    """A stored message as one looks at it, without touching it."""

    id: str
    queue: str
    sequence: int
    status: Literal["ready", "processing", "failed", "delayed"]
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
