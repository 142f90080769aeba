"""A result, how a message ended, and what is known of both."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.checks import check_range, encode
from forq_trio.model.logs.history import Outcome
from forq_trio.model.values import Uuid, bounded

Ending = Outcome | Literal["dead"]
"""How a message ended for who waits for it: as in the history, or as a dead letter, which may be redriven."""

HOW: Mapping[str, str] = {
    "waiting": "has not ended",
    "acked": "was acknowledged",
    "dead": "is a dead letter",
    "discarded": "was discarded",
    "expired": "has expired",
    "deleted": "was deleted",
    "cancelled": "was cancelled",
}
"""What is said of a message, by its state."""

KeepMs = Annotated[
    int, bounded(1, limits.RESULT_STORED_MS_MAX, "For how many milliseconds it is stored at least.")
]


class AckResult(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The result that a consumer gives with an ack. It is stored with the finished message."""

    content: Annotated[
        str,
        Meta(
            description="Any text of at most 64 KiB of UTF-8.",
            extra_json_schema={"maxLength": limits.RESULT_BYTES_MAX},
        ),
    ]
    keep_ms: KeepMs = limits.RESULT_STORED_MS_DEFAULT


class MessageResult(Struct, frozen=True, rename="camel"):
    """How far a message is, and what came of it."""

    id: Uuid  # names the message
    queue: str  # where it is, or was when it ended
    # waiting: it has not ended; dead: it is a dead letter; the others are the outcomes of the history
    state: Literal["waiting", "acked", "dead", "discarded", "expired", "deleted", "cancelled"]
    attempts: int  # how often it was delivered
    result: str | None = None  # what its consumer gave with the ack
    last_error: str | None = None  # the reason of its last nack, or for which it was discarded or cancelled
    ended_at: int | None = None  # when it ended (epoch ms); null while it waits, and where that is not stored


def check_result(result: AckResult, receipts: int) -> AckResult:
    """Return a result that so many receipts share. Raises OutOfRange, InvalidContent, or TypeError for another type."""
    if not isinstance(result, AckResult):
        raise TypeError(f"a result is an AckResult, not {type(result).__name__}")
    check_range("keep_ms", result.keep_ms, 1, limits.RESULT_STORED_MS_MAX)
    size = len(encode("result", result.content, "result"))
    check_range("bytes of the result", size, 0, limits.RESULT_BYTES_MAX, "result")
    check_range("bytes of the results", size * receipts, 0, limits.RESULTS_BYTES_MAX, "result")
    return result
