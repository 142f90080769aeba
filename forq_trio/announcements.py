"""The news that the writer gives other tasks after each commit, without waiting for any of them."""

import trio

from forq_trio.storage.engine import BatchResult, Elsewhere, Snapshot
from forq_trio.watches import ALL_QUEUES, EndingWatches, QueueSetWatches, Watches


class Announcements:
    """Wakes the tasks that wait for the effects of a commit."""

    def __init__(self) -> None:
        self.ready = Watches()  # wakes tasks when messages of a queue become ready
        self.events = Watches()  # wakes tasks when lifecycle events are stored
        self.withdrawn = QueueSetWatches()  # wakes tasks when messages are removed while a consumer has them
        self._withdrawn_at = 0  # the position of the last one that was announced
        self.ended = EndingWatches()  # wakes tasks when their message has ended
        self.moved = trio.Event()
        """Set, and replaced, when published messages moved into their queues; set for good when the writer ends."""
        self.token_changes = 0
        """Grows with every commit that may have changed access tokens; a cache of them is valid until it does."""

    def announce(self, result: BatchResult, snapshot: Snapshot) -> None:
        """Wake the tasks that wait for changes of this batch, or of other processes before it. snapshot: after it."""
        everywhere: list[BatchResult | Elsewhere] = [*result.elsewhere, result]  # the latest news comes last
        for done in everywhere:
            self.ready.notify(done.woken)
            self.events.notify([*done.logged, ALL_QUEUES] if done.logged else ())
            self.ended.tell(done.ended)
        self.token_changes += sum(each.tokens for each in result.elsewhere)
        if any(each.reread for each in result.elsewhere):
            self.ended.notify_all()
        latest = snapshot.withdrawn
        if latest.dropped > self._withdrawn_at:
            self.withdrawn.notify_all()
        elif latest.last > self._withdrawn_at:
            self.withdrawn.notify(latest.queues_after(self._withdrawn_at))
        self._withdrawn_at = latest.last

    def announce_moves(self) -> None:
        """Wake the tasks that wait for published messages: some moved into their queues."""
        self.moved.set()
        self.moved = trio.Event()

    def close_watches(self) -> None:
        """Wake all watching tasks, so that nobody waits any longer."""
        self.ready.close()
        self.events.close()
        self.withdrawn.close()
        self.ended.close()

    def end(self) -> None:
        """Wake the tasks that wait for published messages for good: the writer has ended."""
        self.moved.set()
