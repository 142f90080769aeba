"""Reads pages of the two logs. The database itself makes the lines, so no Python runs for each of them."""

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.logs.history import FinishedMessage, FinishedPage, Outcome
from forq_trio.model.logs.types import LogLines, LogName
from forq_trio.storage.logs import end_of_page
from forq_trio.storage.relational.row import shown_as
from forq_trio.storage.relational.search import filter_bindings
from forq_trio.storage.relational.statements import Query
from forq_trio.storage.rules import PageBytes, lines_within, number_of_last, shown_bytes


def read_page(
    query: Query, log: LogName, after: int, until: int | None, limit: int, queue: str | None
) -> LogLines:
    """See `Reader.log_lines`."""
    if log == "events":
        return _events(query, after, until, limit, queue)
    return _history(query, after, until, limit, queue)


def _events(query: Query, after: int, until: int | None, limit: int, queue: str | None) -> LogLines:
    """A page of events, read in slices: for one queue, many rows may have to be read per line."""
    ((oldest, newest),) = query("event_range")
    first, last = (1, 0) if oldest is None else (oldest, newest)
    start = max(after, first - 1)
    stop = min(last, last if until is None else until, start + limits.EVENTS_SCAN_MAX)
    parts: list[bytes] = []
    left, free = limit, limits.EVENT_LINES_BYTES_MAX
    while left and start < stop:
        most = min(left, limits.EVENTS_SLICE)
        ((count, reached, lines),) = query("event_lines", start, stop, queue, most)
        if count and len(lines) > free:
            lines = lines_within(lines, free, at_least=0 if parts else 1)
            end = number_of_last(lines, "id") if lines else start
            return LogLines(b"".join([*parts, lines]), end, first, last)
        if count:
            parts.append(lines)
            left, free = left - count, free - len(lines)
        start = reached if count == most else stop
    return LogLines(b"".join(parts), max(start, after), first, last)


def _history(query: Query, after: int, until: int | None, limit: int, queue: str | None) -> LogLines:
    """A page of the history, by one statement that bounds the bytes of messages; longer lines are cut off."""
    ((first, last),) = query("history_ends")
    until = last if until is None else min(until, last)
    bounds = (limits.BROWSE_PAGE_BYTES_MAX, limits.HISTORY_LINE_BYTES)
    ((lines, count, end),) = query("history_lines", after, until, limit, *bounds, queue)
    if not count:
        return LogLines(b"", max(after, until), first, last)
    page = lines_within(lines, limits.BROWSE_PAGE_BYTES_MAX)
    if len(page) < len(lines):
        return LogLines(page, number_of_last(page, "historyId"), first, last)
    ((following,),) = query("history_next", end, queue)
    return LogLines(lines, end_of_page(end, following, until), first, last)


def find(
    query: Query,
    queue: str,
    wanted: MessageFilter,
    outcome: Outcome | None,
    before: int | None,
    limit: int,
    scan_max: int,
) -> FinishedPage:
    """See `Reader.find_finished`. To be called in a snapshot."""
    start = limits.SEQUENCE_MAX if before is None else before
    bindings = (queue, start, scan_max, limit, outcome, *filter_bindings(wanted))
    matches = [history_id for (history_id,) in query("find_finished", *bindings)]
    messages: list[FinishedMessage] = []
    end = matches[-1] - 1 if len(matches) == limit else 0
    page = PageBytes()
    for history_id in matches:
        message = _finished(query("finished_by_id", history_id)[0])
        if not page.take_bytes(shown_bytes(message.bytes, message.failures)):
            end = history_id
            break
        messages.append(message)
    ((searched, last),) = query("scanned_finished", queue, start, end, scan_max)
    ((total,),) = query("count_finished", queue)
    more = last is not None and query("finished_below", queue, last)[0][0] is not None
    return FinishedPage(messages, searched, total or 0, last if more else None)


def read_one(query: Query, queue: str, message_id: str) -> FinishedMessage | None:
    rows = query("finished", message_id, queue)
    return _finished(rows[0]) if rows else None


_finished = shown_as(FinishedMessage)
