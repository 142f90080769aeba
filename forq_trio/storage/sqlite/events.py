"""Reads lifecycle events, as lines of NDJSON that SQLite makes."""

from collections.abc import Callable
from typing import Any

from msgspec.json import decode

from forq_trio.model import limits
from forq_trio.model.events import EventLines

Query = Callable[..., list[Any]]
"""Runs a named statement of event_reader.sql, inside one read transaction."""


def read_page(query: Query, after: int, until: int | None, limit: int, queue: str | None) -> EventLines:
    """A page of events; see `storage.engine.Reader.events`."""
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
            lines = _beginning(lines, free, is_first=not parts)
            return EventLines(b"".join([*parts, lines]), _last_id(lines) or start, first, last)
        if count:
            parts.append(lines)
            left, free = left - count, free - len(lines)
        start = reached if count == most else stop
    return EventLines(b"".join(parts), max(start, after), first, last)


def _beginning(lines: bytes, size: int, *, is_first: bool) -> bytes:
    """The first lines, as many as have this size together; is_first: at least one."""
    end = lines.rfind(b"\n", 0, size) + 1
    return lines[: end or (lines.find(b"\n") + 1 if is_first else 0)]


def _last_id(lines: bytes) -> int | None:
    if not lines:
        return None
    event_id: int = decode(lines[lines.rfind(b"\n", 0, -1) + 1 :])["id"]
    return event_id
