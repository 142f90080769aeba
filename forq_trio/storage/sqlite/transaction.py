"""The state of one batch while it runs; thrown away whole when the batch is rolled back.

The operations (produce.py, claim.py, settle.py, due.py) are functions over a Transaction: they run statements and note
what changed. Counts, sequence numbers and ids live in memory and reach the table `queue_counts` once per batch.
"""

from collections.abc import Mapping
from typing import Any

import apsw

from forq_trio import limits
from forq_trio.errors import Overloaded
from forq_trio.model import QueueCounts
from forq_trio.storage.engine import EngineSettings, Event
from forq_trio.storage.sqlite.ids import MessageIds
from forq_trio.storage.sqlite.sql import load

SQL = load("engine")


class Transaction:
    """What one batch has changed so far.

    woken: queues in which messages became ready. due_ms: the earliest moment that this batch made something due.
    due_settled: due messages were looked at, so the next due time has to be read from the index.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        settings: EngineSettings,
        now_ms: int,
        last_seq: int,
        ids: MessageIds,
        counts: Mapping[str, QueueCounts],
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.now_ms = now_ms
        self.last_seq = last_seq
        self.ids = ids
        self.woken: set[str] = set()
        self.due_ms: int | None = None
        self.due_settled = False
        self.failed_queued = False
        self._counts = counts
        self._changes: dict[str, list[int]] = {}
        self._events: dict[tuple[str, str, str], int] = {}
        ids.at(now_ms)

    def query(self, name: str, *bindings: Any) -> list[Any]:
        """Run a named statement and return its rows."""
        return self.connection.execute(SQL[name], bindings).fetchall()

    def run(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """Run a named statement once for each tuple of bindings."""
        if rows:
            self.connection.executemany(SQL[name], rows)

    def delete(self, seqs: list[int]) -> None:
        """Remove these messages."""
        if seqs:
            self.connection.execute(SQL["delete_messages"], (str(seqs),))

    def admit(self, queue: str) -> None:
        """Raise Overloaded if messages sent to `queue` would make one queue too many.

        Only sends ask: what time does to messages, such as moving them to a dead-letter queue, cannot be refused.
        """
        if queue in self._counts or queue in self._changes:
            return
        new = sum(1 for changed in self._changes if changed not in self._counts)
        if len(self._counts) + new >= limits.QUEUES_MAX:
            raise Overloaded(f"there are {limits.QUEUES_MAX} queues already")

    def add(self, queue: str, status: int, count: int = 1) -> None:
        """Note that `queue` has `count` more (or fewer) messages in `status`."""
        changes = self._changes.get(queue)
        if changes is None:
            changes = self._changes[queue] = [0, 0, 0, 0]
        changes[status] += count
        if status == 0 and count > 0:
            self.woken.add(queue)

    def move(self, queue: str, source: int, target: int) -> None:
        """Note that a message of `queue` went from one status to another."""
        self.add(queue, source, -1)
        self.add(queue, target)

    def note(self, kind: str, queue: str, count: int = 1, reason: str = "") -> None:
        """Count an event."""
        key = (kind, queue, reason)
        self._events[key] = self._events.get(key, 0) + count

    def due(self, at_ms: int) -> None:
        """Note that something falls due then."""
        if self.due_ms is None or at_ms < self.due_ms:
            self.due_ms = at_ms

    def ready(self, queue: str) -> int:
        """How many messages of `queue` could be claimed now."""
        changes = self._changes.get(queue)
        known = self._counts.get(queue)
        return (known.ready if known else 0) + (changes[0] if changes else 0)

    def events(self) -> list[Event]:
        return [Event(kind, queue, n, reason) for (kind, queue, reason), n in sorted(self._events.items())]

    def save_counts(self) -> dict[str, QueueCounts]:
        """Write the new counts of the queues this batch changed to their table, and return them."""
        changed = {}
        for queue, (ready, processing, failed, delayed) in self._changes.items():
            old = self._counts.get(queue) or QueueCounts()
            changed[queue] = QueueCounts(
                old.ready + ready, old.processing + processing, old.failed + failed, old.delayed + delayed
            )
        self.run(
            "save_counts",
            [(q, c.ready, c.processing, c.failed, c.delayed, self.now_ms) for q, c in changed.items()],
        )
        return changed

    def savepoint(self) -> tuple[Any, ...]:
        """What `restore` needs to undo the notes (not the statements) made after this."""
        changes = {queue: list(change) for queue, change in self._changes.items()}
        return self.last_seq, set(self.woken), self.due_ms, self.failed_queued, changes, dict(self._events)

    def restore(self, state: tuple[Any, ...]) -> None:
        self.last_seq, self.woken, self.due_ms, self.failed_queued, self._changes, self._events = state
