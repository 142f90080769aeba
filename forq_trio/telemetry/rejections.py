"""Why a call was refused: a closed list, counted in /metrics.

Invalid requests are not counted, except those that point to an attack or to a bound that was reached.
"""

from enum import StrEnum
from typing import Self

from forq_trio.model import errors


class Cause(StrEnum):
    """The causes of rejections: the name and when it is counted."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member

    OVERLOADED = (
        "overloaded",
        "The inbox stayed full, or too many receivers, reads, connections or bodies were there.",
    )
    QUEUE_FULL = "queue_full", "The queue held as many messages or bytes as it may."
    STOPPING = "stopping", "The server was shutting down."
    STORAGE_UNAVAILABLE = "storage_unavailable", "The database refused the operation; nothing was changed."
    STORAGE_FULL = "storage_full", "The disk was full, or nearly so; nothing was stored."
    STORAGE_LOST = (
        "storage_lost",
        "A file of the database was removed, moved, replaced or linked; nothing was stored.",
    )
    READ_TIMEOUT = "read_timeout", "A read took longer than its deadline."
    UNAUTHORIZED = "unauthorized", "The key was missing or wrong."
    THROTTLED = "throttled", "The address had presented too many wrong keys."
    FORBIDDEN = "forbidden", "The token has not the scope, or not for this queue."
    TOO_LARGE = "too_large", "A content, a body, the headers or the address was longer than it may be."
    SLOW_REQUEST = "slow_request", "The request did not arrive in time."


_CAUSES: dict[type[Exception], Cause] = {
    errors.Overloaded: Cause.OVERLOADED,
    errors.QueueFull: Cause.QUEUE_FULL,
    errors.Stopping: Cause.STOPPING,
    errors.StorageUnavailable: Cause.STORAGE_UNAVAILABLE,
    errors.StorageFull: Cause.STORAGE_FULL,
    errors.StorageLost: Cause.STORAGE_LOST,
    errors.CommandRefused: Cause.STORAGE_UNAVAILABLE,
    errors.ReadDeadlineExceeded: Cause.READ_TIMEOUT,
}


def cause_of(error: object) -> Cause | None:
    """The cause that counts an error of the queue; None for one that is no rejection, or leaves the outcome unknown."""
    return _CAUSES.get(type(error))  # type: ignore[arg-type]
