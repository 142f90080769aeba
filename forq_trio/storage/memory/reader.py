"""The reference engine's reader. See `storage.engine.Reader`."""

import random
from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from forq_trio.model.messages import Found, MessageFilter, StoredMessage, StoredQueue
from forq_trio.storage.memory.state import Row, State
from forq_trio.storage.rules import PageBytes


class MemoryReader:
    """Reads the committed state of a `MemoryEngine`."""

    def __init__(self, committed: Callable[[], State]) -> None:
        self._committed = committed

    def queues(self) -> list[StoredQueue]:
        state = self._committed()
        return [state.info(queue) for queue in sorted(state.queues)]

    def queue(self, queue: str) -> StoredQueue:
        state = self._committed()
        oldest = min((row.received_at for row in state.claimable(queue)), default=None)
        return msgspec.structs.replace(state.info(queue), oldest_ready_at=oldest)

    def message(self, queue: str, message_id: str) -> StoredMessage | None:
        for row in self._committed().of_queue(queue):
            if row.id == message_id:
                return row.info()
        return None

    def peek(self, queue: str, limit: int) -> list[StoredMessage]:
        return _page(self._committed().claimable(queue)[:limit])

    def peek_shuffled(self, queue: str, limit: int) -> list[StoredMessage]:
        ready = self._committed().claimable(queue)
        return _page(random.sample(ready, min(limit, len(ready))))

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[StoredMessage]:
        return _page(self._newest_first(queue, before_sequence)[:limit])

    def search(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> Found:
        rows = self._newest_first(queue, before_sequence)
        found: list[StoredMessage] = []
        page = PageBytes()
        searched = 0
        for row in rows[:scan_max]:
            matches = _matches(row, wanted)
            if len(found) == limit or (matches and not page.take(row.info())):
                break
            searched += 1
            if matches:
                found.append(row.info())
        next_before = rows[searched - 1].seq if searched < len(rows) else None
        return Found(found, searched, self._committed().counts(queue).total, next_before)

    def queues_of(self, sequences: Sequence[int]) -> dict[int, str]:
        rows = self._committed().rows
        return {sequence: rows[sequence].queue for sequence in sequences if sequence in rows}

    def _newest_first(self, queue: str, before_sequence: int | None) -> list[Row]:
        rows = self._committed().of_queue(queue)[::-1]
        return [row for row in rows if before_sequence is None or row.seq < before_sequence]

    def interrupt(self) -> None:
        """Nothing here runs long enough to be interrupted."""

    def close(self) -> None:
        """There is nothing to close."""


def _page(rows: Sequence[Row]) -> list[StoredMessage]:
    """The messages of `rows` that one page has."""
    return list(takewhile(PageBytes().take, (row.info() for row in rows)))


def _matches(row: Row, wanted: MessageFilter) -> bool:
    came_at = row.received_at if row.dead_lettered_at is None else row.dead_lettered_at
    attributes = row.attributes or {}
    return (
        wanted.reason in (None, row.failure_reason)
        and (wanted.since_ms is None or came_at >= wanted.since_ms)
        and (wanted.until_ms is None or came_at <= wanted.until_ms)
        and all(attributes.get(key) == value for key, value in wanted.attributes.items())
        and (wanted.text is None or wanted.text in row.content)
    )
