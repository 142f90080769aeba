"""Receipts of deliveries from a table: proof of one claim, by its time and number.

Extending a lock changes neither the time of the claim nor the number of claims; claiming, finishing and releasing the
message does. So this works beside pgq's own consumers, which know no receipts.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from forq_trio.model.errors import MalformedReceipt
from forq_trio.model.messages.types import is_message_id

_TIME = re.compile(
    r"-?infinity|\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2}( BC)?", re.ASCII
)
_COUNT_MAX = 2**31 - 1
_DIGITS_MAX = 10


class PgqReceipt(NamedTuple):
    """A receipt. Its times are texts of the database, because microseconds matter."""

    id: str
    created_at: str
    started_at: str
    number: int

    def __str__(self) -> str:
        return "|".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> "PgqReceipt":
        """Read a receipt. Raises MalformedReceipt."""
        parts = text.split("|")
        if (
            len(parts) != 4
            or not is_message_id(parts[0])
            or _TIME.fullmatch(parts[1]) is None
            or _TIME.fullmatch(parts[2]) is None
            or not (parts[3].isascii() and parts[3].isdecimal() and len(parts[3]) <= _DIGITS_MAX)
        ):
            raise MalformedReceipt
        return cls(parts[0], parts[1], parts[2], min(int(parts[3]), _COUNT_MAX))


def parameters(receipts: Iterable[PgqReceipt]) -> dict[str, Any]:
    """The receipts as parameters of a statement."""
    columns = [list(column) for column in zip(*receipts, strict=True)]
    return dict(zip(("ids", "created", "started", "counts"), columns, strict=True))
