"""How many messages each queue has in each status, and which access token each queue counts for.

- There are at most QUEUES_MAX queues, and as many with settings. A send, a redrive or a setting that would make one
  more is refused, even if that one is only the dead-letter queue that it names. Such a queue exists once the message is
  stored.
- Some messages cannot be refused: one whose own dead-letter queue was deleted, a published one, or one for which a
  receiver names a dead-letter queue. They go to the dead-letter queue of their queue instead. Only default dead-letter
  queues are never refused.
- An access token makes at most QUEUES_A_TOKEN_MAX of the queues that NameQueues makes or that published messages name.
  A dead-letter queue that no token named counts for the token of its queue, even beyond that share, until it is
  forgotten.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from forq_trio.model.errors import ForqError, StorageOpenError
from forq_trio.model.messages.types import QueueCounts, Status
from forq_trio.model.queues.names import DLQ_SUFFIX, is_dead_letter_queue
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query
from forq_trio.storage.rules import check_queues

_BYTES = len(Status)
_NO_CHANGE = [0] * (len(Status) + 1)

Shipped = tuple[dict[str, QueueCounts], list[str], dict[str, str]]
"""The new counts, the queues that were forgotten before, and the tokens that new queues count for."""


class Counts(Part):
    """Messages by queue and status; a queue is known as long as it has counts."""

    shipped = Shipped

    def __init__(self) -> None:
        self.committed: dict[str, QueueCounts] = {}  # by queue
        self.queue_names: list[str] = []  # those of `committed`, sorted; replaced where it changes
        self.makers: dict[str, str] = {}  # of the queues that an access token made, its name
        self.queues_made = Counter[str]()  # how many queues count for each token
        self.changes: dict[str, list[int]] = {}  # the change of each status's count, and of bytes
        self.forgotten: set[str] = set()  # queues that the batch forgot, with what `committed` says of them
        self.now: dict[str, QueueCounts] = {}  # of the changed queues, once the batch has run (`sum_up`)
        self.new_makers: dict[str, str] = {}  # the tokens for which queues count that the batch made
        self._new_queues = 0  # how many of the changed queues are not in `committed`
        self._made: dict[str, int] = {}  # by how many the batch changed `queues_made`

    def of(self, queue: str) -> QueueCounts:
        """The counts of a queue as of the last command."""
        return self._with_changes(queue, self.changes.get(queue, _NO_CHANGE))

    def ready(self, queue: str) -> int:
        """How many messages of `queue` could be claimed now."""
        changes = self.changes.get(queue)
        known = None if queue in self.forgotten else self.committed.get(queue)
        return (known.ready if known else 0) + (changes[0] if changes else 0)

    def exists(self, queue: str) -> bool:
        """True if the queue is known."""
        return queue in self.changes or (queue in self.committed and queue not in self.forgotten)

    def admit(self, *queues: str) -> ForqError | None:
        """Overloaded if these queues would be too many, None if there may be messages in them."""
        known = self.committed
        unknown = {queue for queue in queues if queue not in known and queue not in self.changes}
        return check_queues(len(unknown), len(known) + self._new_queues) if unknown else None

    def made_by(self, token: str) -> int:
        """How many queues count for an access token."""
        return self.queues_made[token] + self._made.get(token, 0)

    def charge(self, queue: str, token: str) -> None:
        """Have a new queue count for an access token."""
        self.new_makers[queue] = token
        self._made[token] = self._made.get(token, 0) + 1

    def make_known(self, queue: str) -> None:
        """Make a queue exist although it has no messages yet."""
        if not self.exists(queue):
            self.touch(queue)

    def forget(self, queue: str) -> None:
        """Forget an empty queue."""
        token = self._maker(queue)
        if token is not None:
            self._made[token] = self._made.get(token, 0) - 1
        self.forgotten.add(queue)
        self.new_makers.pop(queue, None)
        if self.changes.pop(queue, None) is not None:
            self._new_queues -= queue not in self.committed

    def move(
        self, queue: str, source: int | None, to: str, target: int | None, count: int, size: int
    ) -> None:
        """Move `count` messages from one status to the other. size: their bytes, if they are new, removed or moved."""
        stays = source is not None and target is not None and to == queue
        if source is not None:
            changes = self.changes.get(queue) or self.touch(queue)
            changes[source] -= count
            changes[_BYTES] -= 0 if stays else size
        if target is not None:
            changes = self.changes.get(to) or self.touch(to)
            changes[target] += count
            changes[_BYTES] += 0 if stays else size

    def resize(self, queue: str, size: int) -> None:
        """Note that a message of a queue grew by `size` bytes; below 0: shrank."""
        self.touch(queue)[_BYTES] += size

    def touch(self, queue: str) -> list[int]:
        """The changes of a queue, for the caller to add to; the queue is written at the end of the batch."""
        changes = self.changes.get(queue)
        if changes is None:
            if is_dead_letter_queue(queue) and queue not in self.new_makers and not self.exists(queue):
                # It counts for the token of its queue: otherwise expiring messages would make as many queues again.
                token = self._maker(queue.removesuffix(DLQ_SUFFIX))
                if token is not None:
                    self.charge(queue, token)
            changes = self.changes[queue] = [*_NO_CHANGE]
            self._new_queues += queue not in self.committed
        return changes

    def sum_up(self) -> dict[str, QueueCounts]:
        """The counts of the changed queues, at the end of the batch."""
        self.now = {queue: self._with_changes(queue, each) for queue, each in self.changes.items()}
        return self.now

    def _maker(self, queue: str) -> str | None:
        """The token that a queue counts for; None for no token."""
        known = None if queue in self.forgotten else self.makers.get(queue)
        return self.new_makers.get(queue, known)

    def _with_changes(self, queue: str, changes: Sequence[int]) -> QueueCounts:
        ready, processing, failed, delayed, held, size = changes
        old = None if queue in self.forgotten else self.committed.get(queue)
        if old is None:
            return QueueCounts(ready, processing, failed, delayed, held, size)
        return QueueCounts(
            old.ready + ready,
            old.processing + processing,
            old.failed + failed,
            old.delayed + delayed,
            old.held + held,
            old.bytes + size,
        )

    def load(self, query: Query, path: str) -> None:
        for queue, _, _, made_by, *counts in query("load_counts"):
            if not all(type(count) is int for count in counts):
                raise StorageOpenError(f"{path} is damaged: the counts of queue {queue} cannot be read")
            self.now[queue] = QueueCounts(*counts)
            if made_by is not None:
                self.new_makers[queue] = made_by
        self.adopt()

    def copy(self) -> Any:
        changes = {queue: each.copy() for queue, each in self.changes.items()}
        return changes, self.forgotten.copy(), self.new_makers.copy(), self._new_queues, self._made.copy()

    def restore(self, copied: Any) -> None:
        self.changes, self.forgotten, self.new_makers, self._new_queues, self._made = copied

    def adopt(self) -> None:
        if self.forgotten:
            self._drop(self.forgotten)
        now = self.now
        if now:
            new = [queue for queue in now if queue not in self.committed]
            if new:
                # Sorting a list of which all but the end is sorted takes only one pass.
                self.queue_names = sorted(self.queue_names + new)
            self.committed.update(now)
        if self.new_makers:
            self.makers.update(self.new_makers)
            self.queues_made.update(self.new_makers.values())
        self.discard()

    def _drop(self, queues: set[str]) -> None:
        for queue in queues:
            self.committed.pop(queue, None)
            if queue in self.makers:
                self.queues_made[self.makers.pop(queue)] -= 1
        self.queue_names = [queue for queue in self.queue_names if queue not in queues]

    def discard(self) -> None:
        if self.changes:
            self.changes = {}
        if self.now:
            self.now = {}
        if self.forgotten:
            self.forgotten = set()
        if self._made or self.new_makers:
            self.new_makers, self._made = {}, {}
        self._new_queues = 0

    def ship(self) -> Shipped | None:
        if not self.now and not self.forgotten:
            return None
        return self.now, list(self.forgotten), self.new_makers

    def take_over(self, shipped: Shipped) -> None:
        self.now, forgotten, self.new_makers = shipped
        self.forgotten = set(forgotten)
