"""Watches: tasks that wait until messages of a queue become ready, until lifecycle events of a queue (or of any) are
stored, until something happens in one of several queues, or until a message has ended. A watch claims nothing.

However many tasks watch a queue, only WATCHERS_AWAKE_MAX of them are awake at once. Each reads, or sends the writer a
command, and wakes the next one when it waits again or leaves. Thousands that woke together would delay everybody else.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

import trio

from forq_trio.model import limits
from forq_trio.model.results.types import Ending

ALL_QUEUES = ""
"""The queue of a watch for all queues."""


class _Queue:
    """What happened in a queue, and the tasks that wait for more. to_wake: how many of them are still to be woken."""

    __slots__ = ("awake", "changes", "line", "to_wake", "watchers")

    def __init__(self) -> None:
        self.watchers = self.changes = self.awake = self.to_wake = 0
        self.line = trio.lowlevel.ParkingLot()

    def happened(self) -> None:
        self.changes += 1
        self.to_wake = len(self.line)
        self.wake()

    def wake(self) -> None:
        """Wake the first waiting tasks that are still to be woken, as many as may be awake."""
        self.to_wake = min(self.to_wake, len(self.line))
        count = max(0, min(self.to_wake, limits.WATCHERS_AWAKE_MAX - self.awake))
        self.to_wake -= count
        self.awake += count
        self.line.unpark(count=count)


class Watcher:
    """A task that watches a queue. Call `look` before each read of the queue, and `wait` if it has found nothing."""

    __slots__ = ("_changes", "_is_awake", "_queue")

    def __init__(self, queue: _Queue) -> None:
        self._queue = queue
        self._changes = queue.changes
        self._is_awake = False

    def mark(self) -> None:
        """Note this moment: anything that happens from now on ends the next wait."""
        self._changes = self._queue.changes

    async def wait(self) -> None:
        """Wait until something has happened since `mark`. Cancelled, nothing is missed."""
        if self._changes != self._queue.changes:
            await trio.lowlevel.checkpoint()
            return
        self.rest()
        await self._queue.line.park()
        self._is_awake = True

    def rest(self) -> None:
        """Let another task be awake, because this one has finished reading."""
        if self._is_awake:
            self._is_awake = False
            self._queue.awake -= 1
            self._queue.wake()


class Watches:
    """The watchers of all queues.

    closed: no further wake-up will come. on_first: called when the first watcher starts to watch.
    """

    def __init__(self) -> None:
        self.on_first: Callable[[], object] = lambda: None
        self._by_queue: dict[str, _Queue] = {}
        self._closing = trio.Event()

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    @contextmanager
    def on(self, name: str) -> Iterator[Watcher]:
        """Watch a queue while the body runs."""
        if not self._by_queue:
            self.on_first()
        queue = self._by_queue.setdefault(name, _Queue())
        queue.watchers += 1
        watcher = Watcher(queue)
        try:
            yield watcher
        finally:
            watcher.rest()
            queue.watchers -= 1
            if not queue.watchers:
                del self._by_queue[name]

    @property
    def watched(self) -> Set[str]:
        """The queues that are watched, at any time that this is looked at."""
        return self._by_queue.keys()

    def __contains__(self, queue: str) -> bool:
        return queue in self._by_queue

    def __bool__(self) -> bool:
        return bool(self._by_queue)

    def notify(self, queues: Iterable[str]) -> None:
        """Wake the tasks that watch these queues."""
        if not self._by_queue:
            return
        for name in queues:
            queue = self._by_queue.get(name)
            if queue is not None:
                queue.happened()

    def notify_all(self) -> None:
        """Wake all watching tasks."""
        for queue in self._by_queue.values():
            queue.happened()

    async def wait_closed(self) -> None:
        """Wait until `close`."""
        await self._closing.wait()

    def close(self) -> None:
        """Wake all watching tasks; `closed` tells them that no further wake-up will come."""
        self._closing.set()
        for queue in self._by_queue.values():
            queue.changes += 1
            queue.awake += len(queue.line)
            queue.line.unpark_all()


class QueueSetWatches(Watches):
    """The tasks that wait until something happens in one of several queues; for the same ones they share a watch."""

    def __init__(self) -> None:
        super().__init__()
        self._sets: dict[str, set[str]] = {}  # by queue, the names of the watches for it among others

    @contextmanager
    def on_any(self, queues: Collection[str]) -> Iterator[Watcher]:
        """Watch these queues while the body runs."""
        name = "\n".join(sorted(queues))
        for queue in queues:
            self._sets.setdefault(queue, set()).add(name)
        try:
            with self.on(name) as watcher:
                yield watcher
        finally:
            if name not in self:
                for queue in queues:
                    self._sets[queue].discard(name)
                    if not self._sets[queue]:
                        del self._sets[queue]

    def notify(self, queues: Iterable[str]) -> None:
        super().notify({name for queue in queues for name in self._sets.get(queue, ())})


class EndingWatches(Watches):
    """The tasks that wait until a message has ended, each by its id in place of a queue."""

    def __init__(self) -> None:
        super().__init__()
        self._endings: dict[str, Ending] = {}  # of watched messages

    @contextmanager
    def on(self, name: str) -> Iterator[Watcher]:
        try:
            with super().on(name) as watcher:
                yield watcher
        finally:
            if name not in self:
                self._endings.pop(name, None)

    def tell(self, ended: Mapping[str, Ending]) -> None:
        """Wake the tasks that wait for these messages."""
        if not self:
            return
        for message_id in self._by_queue.keys() & ended.keys():
            self._endings[message_id] = ended[message_id]
            self._by_queue[message_id].happened()

    def ending(self, message_id: str) -> Ending | None:
        """How a watched message ended; None if it has not, since the first task has begun to wait for it."""
        return self._endings.get(message_id)
