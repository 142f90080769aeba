"""Settlements of received messages by their receipts: ack, nack, extend, release."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.error_answers import Explanation
from forq_trio.model.errors import CallerError, ForqError, MalformedReceipt, ReceiptNotCurrent
from forq_trio.model.messages.bodies import LeaseMs
from forq_trio.model.messages.types import Delivery
from forq_trio.model.results.types import AckResult
from forq_trio.model.values import LEFT_OUT, EpochMs, bounded, up_to

Receipts = Annotated[
    list[Annotated[str, Meta(description="Proof of a delivery. Opaque; names its message.")]],
    up_to(limits.RECEIPTS_BATCH_MAX, "Receipts of this queue's messages."),
]
DelayMs = Annotated[
    int, bounded(0, limits.NACK_DELAY_MS_MAX, "After how many milliseconds the messages are ready again.")
]
MaxAttempts = Annotated[
    int, bounded(1, limits.MAX_ATTEMPTS_MAX, "The messages' own bound on attempts from now on.")
]
Reason = Annotated[
    str,
    Meta(
        description="Stored as the messages' last error.",
        extra_json_schema={"maxLength": limits.REASON_LENGTH_MAX},
    ),
]


class CancelRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Why a message is cancelled."""

    reason: Annotated[
        str,
        Meta(
            description="What its consumer is told, if it waits for that. In the history it is the last error.",
            extra_json_schema={"maxLength": limits.REASON_LENGTH_MAX},
        ),
    ] = ""


OneReceipt = str | Delivery
"""A receipt, or the delivery that has it. A settlement of one raises an error if it is refused."""


class ManyReceipts(Protocol):
    """A list, or the like, of receipts or deliveries: a settlement returns a list of results, even for a single one.

    These two methods tell type checkers that a str is not one, although it is a sequence of texts.
    """

    def __contains__(self, value: object, /) -> bool: ...

    def __iter__(self) -> Iterator[OneReceipt]: ...


def receipts_of(given: OneReceipt | ManyReceipts) -> list[str]:
    """The receipts as texts. Raises TypeError for anything else."""
    if isinstance(given, OneReceipt):
        return [_text_of(given)]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"receipts are a str, a Delivery or a list of them, not {type(given).__name__}")
    return [_text_of(each) for each in given]


def _text_of(given: object) -> str:
    if isinstance(given, Delivery):
        return given.receipt
    if isinstance(given, str):
        return given
    raise TypeError(f"a receipt is a str or a Delivery, not {type(given).__name__}")


class AckRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to acknowledge."""

    receipts: Receipts
    result: AckResult | None = None  # what came of each of them (docs/results.md); null: none


class NackRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages that failed."""

    receipts: Receipts
    # null: the queue's back-off by attempt, 1, 5, 15, 30 and 60 seconds by default
    delay_ms: DelayMs | None = None
    reason: Reason | None = None  # null: none
    final: bool = False  # they fail now, however many attempts are left; delayMs does not matter then
    max_attempts: MaxAttempts | None = None  # null: their bound stays as it is


class DiscardRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Messages that no attempt can process."""

    receipts: Receipts
    reason: Annotated[
        str,
        Meta(
            description="Stored in the history as the messages' last error.",
            extra_json_schema={"minLength": 1, "maxLength": limits.REASON_LENGTH_MAX},
        ),
    ]


class ExtendRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages whose leases to extend."""

    receipts: Receipts
    lease_ms: LeaseMs | None = None  # null: the lease time of the queue


class ReleaseRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Messages to give back unprocessed, without counting the attempt."""

    receipts: Receipts
    delay_ms: DelayMs = 0


class ReceiptResult(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The result of one receipt."""

    receipt: str  # as it was given
    ok: bool  # false: it is refused, and code and message say why
    lease_until: Annotated[EpochMs | None, LEFT_OUT] = None  # the new end of a lease that was extended
    code: Annotated[str | None, LEFT_OUT] = None  # of the error
    message: Explanation = None
    # of a nack: the message has failed, and is a dead letter, or deleted where its queue has none
    failed: Annotated[bool, LEFT_OUT] = False


class ReceiptResults(Struct, frozen=True, rename="camel"):
    """One result per receipt, in their order."""

    results: list[ReceiptResult]  # of the receipts, in their order


def refused(receipt: str, error: ForqError) -> ReceiptResult:
    """The result of a receipt that is refused alone."""
    return ReceiptResult(receipt, False, code=error.code, message=error.message)


def outcome_of(
    given: OneReceipt | ManyReceipts, results: list[ReceiptResult]
) -> ReceiptResult | list[ReceiptResult]:
    """What a settlement returns: the results of several receipts, or a single one; raises if that is refused."""
    if not isinstance(given, OneReceipt):
        return results
    (result,) = results
    if not result.ok:
        raise _REFUSALS.get(result.code, CallerError)(result.message, code=result.code)
    return result


_REFUSALS: dict[str | None, type[CallerError]] = {
    kind.code: kind for kind in (ReceiptNotCurrent, MalformedReceipt)
}
