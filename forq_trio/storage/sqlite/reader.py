"""The `Reader` of the SQLite engine: a read-only connection."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import takewhile
from typing import Any

import apsw

from forq_trio.model.errors import ReadDeadlineExceeded, StorageUnavailable
from forq_trio.model.messages import (
    Found,
    MessageFilter,
    Status,
    StoredMessage,
    StoredQueue,
    is_dead_letter_queue,
)
from forq_trio.storage.rules import PageBytes
from forq_trio.storage.sqlite.files.open import open_reader
from forq_trio.storage.sqlite.operations.shuffle import draw
from forq_trio.storage.sqlite.row import read_attributes, read_failures, shown
from forq_trio.storage.sqlite.search import ScannedRow, matches
from forq_trio.storage.sqlite.statements import load

_SQL = load("reader") | load("shuffle")
_NEWEST = 2**63 - 1


class SqliteReader:
    """Reader over one SQLite file: each call is one statement, or one transaction, hence one consistent snapshot."""

    def __init__(self, path: str) -> None:
        self._connection = open_reader(path)

    def queues(self) -> list[StoredQueue]:
        return [_queue(name, None, *counts) for name, *counts in self._query("queues")]

    def queue(self, queue: str) -> StoredQueue:
        with self._snapshot():
            counts = next(iter(self._query("queue", queue)), (0, 0, 0, 0, 0, 0))
            oldest = self._query("oldest_ready", queue)[0][0] if counts[0] else None
        return _queue(queue, oldest, *counts)

    def message(self, queue: str, message_id: str) -> StoredMessage | None:
        rows = self._query("message", queue, message_id)
        return _message(rows[0]) if rows else None

    def peek(self, queue: str, limit: int) -> list[StoredMessage]:
        return self._page("peek", queue, limit)

    def peek_shuffled(self, queue: str, limit: int) -> list[StoredMessage]:
        with self._snapshot():
            rows = self._query("queue", queue)
            drawn = draw(self._query, queue, rows[0][0] if rows else 0, limit)
            messages = (_message(self._query("message_by_sequence", seq)[0]) for seq in drawn)
            return list(takewhile(PageBytes().take, messages))

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[StoredMessage]:
        before = _NEWEST if before_sequence is None else before_sequence
        return self._page("browse", queue, before, limit)

    def search(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> Found:
        found: list[StoredMessage] = []
        page = PageBytes()
        searched = 0
        before = _NEWEST if before_sequence is None else before_sequence
        # Row by row: a page that is soon full does not pay for the rest of the scan.
        with self._snapshot(), closing(self._rows("scan", queue, before, scan_max)) as rows:
            total = sum(sum(counts[:5]) for counts in self._query("queue", queue))
            for row in rows:
                if self._matches(row, wanted):
                    message = _message(self._query("message_by_sequence", row[0])[0])
                    if not page.take(message):
                        break
                    found.append(message)
                searched += 1
                before = row[0]
                if len(found) == limit:
                    break
            more = searched and self._query("scan", queue, before, 1)
        return Found(found, searched, total, before if more else None)

    def _matches(self, row: Sequence[Any], wanted: MessageFilter) -> bool:
        """Whether a row of the statement `scan` matches `wanted`."""
        if not matches(ScannedRow._make(row), wanted):
            return False
        return wanted.text is None or bool(self._query("has_text", row[0], wanted.text)[0][0])

    def queues_of(self, sequences: Sequence[int]) -> dict[int, str]:
        return dict(self._query("queues_of", str(list(sequences))))

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Run several statements in one read transaction: they see the same state."""
        self._query("begin_reading")
        try:
            yield
        finally:
            self._connection.execute(_SQL["end_reading"])

    def _page(self, name: str, *bindings: Any) -> list[StoredMessage]:
        """The messages of a statement that one page has; the others are not read."""
        with closing(self._rows(name, *bindings)) as rows:
            return list(takewhile(PageBytes().take, map(_message, rows)))

    def _query(self, name: str, *bindings: Any) -> list[Any]:
        return list(self._rows(name, *bindings))

    def _rows(self, name: str, *bindings: Any) -> Generator[Any, None, None]:
        try:
            with closing(self._connection.execute(_SQL[name], bindings)) as cursor:
                yield from cursor
        except apsw.InterruptError:
            raise ReadDeadlineExceeded from None
        except apsw.Error as error:
            raise StorageUnavailable(str(error)) from error


def _queue(
    queue: str,
    oldest_ready_at: int | None,
    ready: int,
    delayed: int,
    processing: int,
    failed: int,
    held: int,
    size: int,
) -> StoredQueue:
    is_dlq = is_dead_letter_queue(queue)
    return StoredQueue(queue, is_dlq, ready, delayed, processing, failed, oldest_ready_at, held, size)


def _message(row: Sequence[Any]) -> StoredMessage:
    values = list(row)
    values[_STATUS] = Status(row[_STATUS])
    values[_ATTRIBUTES] = shown(read_attributes, row[_ATTRIBUTES])
    values[_GROUP] = row[_GROUP] or None
    values[_FAILURES] = shown(read_failures, row[_FAILURES])
    return StoredMessage(*values)


_MEMBERS = StoredMessage.__struct_fields__
_STATUS, _ATTRIBUTES, _GROUP, _FAILURES = map(_MEMBERS.index, ("status", "attributes", "group", "failures"))
