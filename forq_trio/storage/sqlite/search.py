"""Which messages a search is after, told from what it looks at without reading contents."""

from typing import NamedTuple

from forq_trio.model.messages import MessageFilter
from forq_trio.storage.sqlite.row import read_attributes, shown


class Looked(NamedTuple):
    """A row of the statement `scan`."""

    seq: int
    reason: str | None
    at_ms: int
    attributes: str | None


def matches(looked: Looked, wanted: MessageFilter) -> bool:
    """True if all that `wanted` says holds, but for the text."""
    if wanted.reason is not None and looked.reason != wanted.reason:
        return False
    if wanted.since_ms is not None and looked.at_ms < wanted.since_ms:
        return False
    if wanted.until_ms is not None and looked.at_ms > wanted.until_ms:
        return False
    if not wanted.attributes:
        return True
    return wanted.attributes.items() <= (shown(read_attributes, looked.attributes) or {}).items()
