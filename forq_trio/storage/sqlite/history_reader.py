"""Reads of the history. A page is made of one statement, lines and all, so no Python runs for its messages."""

from collections.abc import Callable, Sequence
from typing import Any

from forq_trio.model import limits
from forq_trio.model.fingerprints import fingerprint_key
from forq_trio.model.history import FinishedMessage, FoundFinished, HistoryEnds, HistoryLines, Outcome
from forq_trio.model.messages import MessageFilter
from forq_trio.storage.history import end_of_page
from forq_trio.storage.rules import PageBytes, lines_within, number_of_last
from forq_trio.storage.sqlite.row import read_attributes, read_failures, shown, write_attributes

Query = Callable[..., list[Any]]


def read_page(query: Query, after: int, until: int | None, limit: int, queue: str | None) -> HistoryLines:
    """See `Reader.history`; in a snapshot."""
    ends = HistoryEnds(*query("history_ends")[0])
    until = ends.last if until is None else min(until, ends.last)
    bounds = (after, until, limit, limits.BROWSE_PAGE_BYTES_MAX, limits.HISTORY_LINE_BYTES)
    if queue is None:
        ((lines, count, last),) = query("history_page", *bounds)
    else:
        ((lines, count, last),) = query("history_page_of_queue", *bounds, queue)
    if count:
        page = lines_within(lines)
        if len(page) < len(lines):
            return HistoryLines(page, number_of_last(page, "historyId"), ends)
        if queue is None:
            ((following,),) = query("history_next", last)
        else:
            ((following,),) = query("history_next_of_queue", queue, last)
        return HistoryLines(lines, end_of_page(last, following, until), ends)
    return HistoryLines(b"", max(after, until), ends)


def find(
    query: Query,
    queue: str,
    wanted: MessageFilter,
    outcome: Outcome | None,
    before: int | None,
    limit: int,
    scan_max: int,
) -> FoundFinished:
    """See `Reader.find_finished`; in a snapshot."""
    start = limits.SEQUENCE_MAX if before is None else before
    attributes = write_attributes(wanted.attributes)
    filters = (
        outcome,
        wanted.reason,
        wanted.since_ms,
        wanted.until_ms,
        wanted.error,
        attributes,
        wanted.text,
        fingerprint_key(wanted.error_like),
    )
    matches = [
        history_id for (history_id,) in query("find_finished", queue, start, scan_max, limit, *filters)
    ]
    messages: list[FinishedMessage] = []
    end = matches[-1] - 1 if len(matches) == limit else 0
    page = PageBytes()
    for history_id in matches:
        message = _finished(query("finished_by_id", history_id)[0])
        if not page.take(message):
            end = history_id
            break
        messages.append(message)
    ((searched, last),) = query("scanned_finished", queue, start, end, scan_max)
    ((total,),) = query("count_finished", queue)
    more = last is not None and query("finished_below", queue, last)[0][0] is not None
    return FoundFinished(messages, searched, total or 0, last if more else None)


def read_one(query: Query, queue: str, message_id: str) -> FinishedMessage | None:
    rows = query("finished", message_id, queue)
    return _finished(rows[0]) if rows else None


def _finished(row: Sequence[Any]) -> FinishedMessage:
    values = list(row)
    values[_ATTRIBUTES] = shown(read_attributes, row[_ATTRIBUTES]) or {}
    values[_GROUP] = row[_GROUP] or None
    values[_FAILURES] = shown(read_failures, row[_FAILURES])
    return FinishedMessage(*values)


_MEMBERS = FinishedMessage.__struct_fields__
_ATTRIBUTES, _GROUP, _FAILURES = map(_MEMBERS.index, ("attributes", "group", "failures"))
