"""Searches: one statement finds the messages that match, and how far the search got.

It reads from the newest message down until the page is full or the scan ends. No Python runs for a message that does
not match.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.fingerprints import fingerprint_key
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.relational.needs import Needs
from forq_trio.storage.relational.row import write_attributes
from forq_trio.storage.relational.statements import Query


class Span(NamedTuple):
    """The messages that a search may read: the newest `scan_max` between two sequence numbers, both excluded."""

    before: int
    above: int
    scan_max: int

    @classmethod
    def of(cls, wanted: MessageFilter, before_sequence: int | None, scan_max: int) -> Self:
        """before_sequence: None for the newest."""
        before = limits.SEQUENCE_MAX if before_sequence is None else before_sequence
        above = 0 if wanted.above_sequence is None else wanted.above_sequence
        return cls(before, above, scan_max)


class SearchReach(NamedTuple):
    """How far a search got: the members of `FoundRows`."""

    searched: int
    total: int
    next_before: int | None
    oldest_at: int | None


def find(query: Query, queue: str, wanted: MessageFilter, span: Span, limit: int) -> list[int]:
    """The sequences of the newest messages that match, at most `limit`."""
    return [seq for (seq,) in query("find", queue, *span, *filter_bindings(wanted), wanted.status, limit)]


def count_matching(query: Query, queue: str, wanted: MessageFilter, span: Span) -> tuple[int, int]:
    """How many messages of the span match, and how many of these are in process."""
    bindings = (*filter_bindings(wanted), wanted.status)
    ((count, processing),) = query("count_matching", queue, *span, *bindings)
    return count, processing


def filter_bindings(wanted: MessageFilter) -> tuple[Any, ...]:
    """The conditions of a filter, on stored or finished messages, as bindings of the statements."""
    return (
        wanted.reason,
        wanted.since,
        wanted.until,
        wanted.error,
        write_attributes(wanted.attributes),
        wanted.text,
        fingerprint_key(wanted.error_like),
    )


def end_of_page(matches: Sequence[int], limit: int, span: Span) -> int:
    """The sequence number above which a search has read its whole span: the last match if the page is full."""
    return matches[-1] - 1 if len(matches) == limit else span.above


def look_back(query: Query, queue: str, span: Span, end: int) -> SearchReach:
    """How far a search got that has read the messages of its span above the sequence number `end`."""
    ((searched, last),) = query("scanned", queue, span.before, end, span.scan_max)
    total = sum(QueueCounts(*row).total for row in query("queue", queue))
    if last is None:
        return SearchReach(0, total, None, None)
    ((following,),) = query("next_scanned", queue, last, span.above)
    more = following is not None or Needs(query).has_between(queue, last, span.above)
    ((oldest_at,),) = query("came_at", last)
    return SearchReach(searched, total, last if more else None, oldest_at)
