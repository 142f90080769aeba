"""Matches messages with a filter by the columns that a search reads first, without the contents."""

from typing import NamedTuple

from forq_trio.model.messages import MessageFilter
from forq_trio.storage.sqlite.row import read_attributes, shown


class ScannedRow(NamedTuple):
    """A row of the statement `scan`."""

    seq: int
    reason: str | None
    at_ms: int
    attributes: str | None


def matches(row: ScannedRow, wanted: MessageFilter) -> bool:
    """True if the row matches `wanted`, its text not considered."""
    if wanted.reason is not None and row.reason != wanted.reason:
        return False
    if wanted.since_ms is not None and row.at_ms < wanted.since_ms:
        return False
    if wanted.until_ms is not None and row.at_ms > wanted.until_ms:
        return False
    if not wanted.attributes:
        return True
    return wanted.attributes.items() <= (shown(read_attributes, row.attributes) or {}).items()
