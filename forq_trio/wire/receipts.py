"""Settlements of received messages by their receipts: ack, nack, extend, release."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.wire.errors import Explanation
from forq_trio.wire.messages import LeaseMs
from forq_trio.wire.values import LEFT_OUT, EpochMs, bounded, up_to

Receipts = Annotated[
    list[Annotated[str, Meta(description="Proof of a delivery. Opaque; names its message.")]],
    up_to(limits.RECEIPTS_BATCH_MAX, "Receipts of this queue's messages."),
]
DelayMs = Annotated[
    int, bounded(0, limits.NACK_DELAY_MS_MAX, "After how many milliseconds the messages are ready again.")
]
Reason = Annotated[
    str,
    Meta(
        description="Stored as the messages' last error.",
        extra_json_schema={"maxLength": limits.REASON_LENGTH_MAX},
    ),
]


class AckRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages to acknowledge."""

    receipts: Receipts


class NackRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages that failed. Without delayMs the queue's back-off by attempt: 1, 5, 15, 30, 60 seconds."""

    receipts: Receipts
    delay_ms: DelayMs | None = None
    reason: Reason | None = None


class ExtendRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages whose leases to extend. leaseMs: from now; absent for the queue's."""

    receipts: Receipts
    lease_ms: LeaseMs | None = None


class ReleaseRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to give back unprocessed, the attempt uncounted."""

    receipts: Receipts
    delay_ms: DelayMs = 0


class ReceiptResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of one receipt: ok (with leaseUntil when it was extended), or not ok, with code and message why."""

    receipt: str
    ok: bool
    lease_until: Annotated[EpochMs | None, LEFT_OUT] = None
    code: Annotated[str | None, LEFT_OUT] = None
    message: Explanation = None


class ReceiptResults(Struct, frozen=True, rename="camel"):
    """One result per receipt, in their order."""

    results: list[ReceiptResult]
