"""For how long the oldest ready message of each queue could have been claimed.

The ages are read from the database: by the job that refreshes the gauges, every 30 s, and by a page before it shows a
queue. If nothing was committed since the last read, nothing is read.
"""

from collections.abc import Container, Sequence
from functools import partial

from msgspec import Struct

from forq_trio.broker.known import Known
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.reader import Reader
from forq_trio.telemetry.counters import Counters


class _AgeRead(Struct, frozen=True, gc=False):
    """A read of a queue's age. since: epoch ms; None if no message was ready. commits, delivered: the counters then."""

    since: int | None
    read_at: int
    commits: int
    delivered: int


class Ages:
    """The ages of at most SERIES_QUEUES_MAX queues. clock: the wall clock of the messages."""

    def __init__(self, known: Known, readers: ReaderPool, counters: Counters, clock: Clock) -> None:
        self._known = known
        self._readers = readers
        self._counters = counters
        self._clock = clock
        self._reads: dict[str, _AgeRead] = {}

    def age_ms(self, queue: str) -> int | None:
        """How long the oldest ready message could have been claimed; None without one, or if that is not known.

        If messages were delivered since the read, the oldest may have been among them; then this is its age at the
        read.
        """
        read = self._reads.get(queue)
        if read is None or read.since is None or not self._known.counts_of(queue).ready:
            return None
        until = self._clock.now_ms() if self._delivered(queue) == read.delivered else read.read_at
        return max(0, until - read.since)

    async def refresh(self, queues: Sequence[str], max_age_seconds: float) -> None:
        """Read the ages of queues with ready messages whose last read is older than `max_age_seconds`.

        Reads AGES_READ_MAX queues at the most. Raises what reads raise; cancelled, the read is interrupted.
        """
        read_before = self._clock.now_ms() - max_age_seconds * limits.SECOND_MS
        commits = self._counters.commits.count
        stale = []
        for queue in queues:
            read = self._reads.get(queue)
            if read is None or (read.read_at < read_before and read.commits != commits):
                stale.append(queue)
        await self.read(stale[: limits.AGES_READ_MAX])

    async def read(self, queues: Sequence[str]) -> None:
        """Read the ages of the queues that have ready messages, a few at a time."""
        wanted = [queue for queue in queues if self._known.counts_of(queue).ready]
        for start in range(0, len(wanted), limits.METRIC_QUEUES_READ_MAX):
            part = wanted[start : start + limits.METRIC_QUEUES_READ_MAX]
            commits = self._counters.commits.count
            delivered = {queue: self._delivered(queue) for queue in part}
            read_at = self._clock.now_ms()
            since = await self._readers.run(partial(_claimable_since, part))
            for queue in part:
                if queue in self._reads or len(self._reads) < limits.SERIES_QUEUES_MAX:
                    read = _AgeRead(since.get(queue), read_at, commits, delivered[queue])
                    self._reads[queue] = read

    def keep(self, queues: Container[str]) -> None:
        """Forget all queues but these."""
        self._reads = {queue: read for queue, read in self._reads.items() if queue in queues}

    def _delivered(self, queue: str) -> int:
        activity = self._counters.queues.activity(queue)
        return 0 if activity is None else activity.delivered.count


def _claimable_since(queues: Sequence[str], reader: Reader) -> dict[str, int]:
    """By queue, since when (epoch ms) its oldest ready message can be claimed; queues without one are left out.

    The oldest message is the one received first. If it is also the next to be claimed (unless priorities or the order
    put another first), the time for which it was delayed does not count.
    """
    since = {}
    for queue in queues:
        _, oldest = reader.queue(queue)
        if oldest is None:
            continue
        head = reader.peek(queue, 1)
        if head and head[0].received_at == oldest:
            oldest = max(oldest, head[0].process_after)
        since[queue] = oldest
    return since
