"""What becomes of received messages, by their receipts: ack, nack, extend, release."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.wire.messages import LeaseMs
from forq_trio.wire.values import LEFT_OUT, EpochMs, bounded, up_to

Receipts = Annotated[
    list[Annotated[str, Meta(description="Proof of a delivery. Opaque; names its message.")]],
    up_to(limits.RECEIPTS_BATCH_MAX, "Receipts of this queue's messages."),
]
DelayMs = Annotated[
    int, bounded(0, limits.NACK_DELAY_MS_MAX, "For how many milliseconds nobody gets the messages.")
]
Reason = Annotated[
    str,
    Meta(
        description="Kept as the messages' last error.",
        extra_json_schema={"maxLength": limits.REASON_LENGTH_MAX},
    ),
]


class AckRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages that are done with."""

    receipts: Receipts


class NackRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages that failed. Without delayMs they back off by attempt, as the queue has it: 1, 5, 15, 30, 60 seconds."""

    receipts: Receipts
    delay_ms: DelayMs | None = None
    reason: Reason | None = None


class ExtendRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages that take longer. Without leaseMs: as long as a lease of the queue is."""

    receipts: Receipts
    lease_ms: LeaseMs | None = None


class ReleaseRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to give back unprocessed, the attempt uncounted."""

    receipts: Receipts
    delay_ms: DelayMs = 0


class Settled(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What became of one receipt: ok (with leaseUntil when a lease was extended), or not and the code why."""

    receipt: str
    ok: bool
    lease_until: Annotated[EpochMs | None, LEFT_OUT] = None
    code: Annotated[str | None, LEFT_OUT] = None


class SettledReceipts(Struct, frozen=True, rename="camel"):
    """One result per receipt, in their order."""

    results: list[Settled]
