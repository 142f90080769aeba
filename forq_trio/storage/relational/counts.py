"""The part of a Transaction that counts: messages by status and queue, as changes to the cache."""

from collections.abc import Sequence

from forq_trio.model.errors import ForqError
from forq_trio.model.messages import QueueCounts, Status
from forq_trio.model.queue_names import DLQ_SUFFIX, is_dead_letter_queue
from forq_trio.storage.relational.cache import Cache
from forq_trio.storage.rules import check_queues, check_share_of_queues, has_share_of_queues

_BYTES = len(Status)
_NO_CHANGE = [0] * (len(Status) + 1)


class Counts:
    """By how much one batch changed the counts of queues.

    _changes: messages in each status, and bytes, by queue. _forgotten: queues that were forgotten, with what the cache
    says of them. _new_queues: how many of the changed queues are not in the cache. _counts: what is written at the end
    of the batch. _makers: the access tokens for which new queues count; _made: by how much this batch changed the
    number of queues that count for each.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._changes: dict[str, list[int]] = {}
        self._forgotten: set[str] = set()
        self._new_queues = 0
        self._counts: dict[str, QueueCounts] = {}
        self._makers: dict[str, str] = {}
        self._made: dict[str, int] = {}

    def counted(self, queue: str) -> QueueCounts:
        """The counts of a queue as of the last command."""
        return self._with_changes(queue, self._changes.get(queue, _NO_CHANGE))

    def ready(self, queue: str) -> int:
        """How many messages of `queue` could be claimed now."""
        changes = self._changes.get(queue)
        known = None if queue in self._forgotten else self._cache.counts.get(queue)
        return (known.ready if known else 0) + (changes[0] if changes else 0)

    def admit(self, *queues: str) -> ForqError | None:
        """Overloaded if these queues would be too many, None if there may be messages in them."""
        known = self._cache.counts
        unknown = {queue for queue in queues if queue not in known and queue not in self._changes}
        return check_queues(len(unknown), len(known) + self._new_queues) if unknown else None

    def name(self, queue: str, made_by: str) -> ForqError | None:
        """Make a queue known that a key wants to use; the error if there are too many, in all or of the key."""
        if self._exists(queue):
            return None
        made = self._cache.queues_made[made_by] + self._made.get(made_by, 0)
        refusal = self.admit(queue) or check_share_of_queues(made_by, made)
        if refusal is None:
            if has_share_of_queues(made_by):
                self._charge(queue, made_by)
            self.make_known(queue)
        return refusal

    def make_known(self, queue: str) -> None:
        """A queue exists from now on, although it has no messages yet."""
        if not self._exists(queue):
            self._changes_of(queue)

    def _exists(self, queue: str) -> bool:
        return queue in self._changes or (queue in self._cache.counts and queue not in self._forgotten)

    def _charge(self, queue: str, made_by: str) -> None:
        self._makers[queue] = made_by
        self._made[made_by] = self._made.get(made_by, 0) + 1

    def _maker(self, queue: str) -> str | None:
        """The token for which a queue counts; None: it counts for nobody."""
        known = None if queue in self._forgotten else self._cache.makers.get(queue)
        return self._makers.get(queue, known)

    def _forget_counts(self, queue: str) -> None:
        made_by = self._maker(queue)
        if made_by is not None:
            self._made[made_by] = self._made.get(made_by, 0) - 1
        self._forgotten.add(queue)
        self._makers.pop(queue, None)
        if self._changes.pop(queue, None) is not None:
            self._new_queues -= queue not in self._cache.counts

    def _count(
        self, queue: str, source: int | None, to: str, target: int | None, count: int, size: int
    ) -> None:
        """Messages by status: `count` fewer in one, as many more in the other; bytes where they come, go or move."""
        stays = source is not None and target is not None and to == queue
        if source is not None:
            changes = self._changes.get(queue) or self._changes_of(queue)
            changes[source] -= count
            changes[_BYTES] -= 0 if stays else size
        if target is not None:
            changes = self._changes.get(to) or self._changes_of(to)
            changes[target] += count
            changes[_BYTES] += 0 if stays else size

    def resize(self, queue: str, size: int) -> None:
        """A message of a queue got so many bytes more; less than 0: fewer."""
        self._changes_of(queue)[_BYTES] += size

    def _changes_of(self, queue: str) -> list[int]:
        """By how many messages in each status, and bytes, this batch changed the queue."""
        changes = self._changes.get(queue)
        if changes is None:
            if is_dead_letter_queue(queue) and queue not in self._makers and not self._exists(queue):
                # Of a queue that a token made: otherwise its messages that expire would make as many queues again.
                made_by = self._maker(queue.removesuffix(DLQ_SUFFIX))
                if made_by is not None:
                    self._charge(queue, made_by)
            changes = self._changes[queue] = [*_NO_CHANGE]
            self._new_queues += queue not in self._cache.counts
        return changes

    def _with_changes(self, queue: str, changes: Sequence[int]) -> QueueCounts:
        ready, processing, failed, delayed, held, size = changes
        old = None if queue in self._forgotten else self._cache.counts.get(queue)
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
