"""The head of a queue: its ready messages up to the place where claims start to read the index.

PostgreSQL keeps removed entries in an index as long as any transaction of the cluster may still see them. A claim that
began at the first entry would walk past every message that was ever claimed. So claims begin at the frontier of the
queue, a place in the claim order that moves as they read:

    every ready message up to the frontier is in the head; those behind it are found in the index.

A claim takes the first messages of the head and then reads behind the frontier. What it reads joins the head, and what
it leases leaves it. A message that becomes ready joins the head unless its place is behind the frontier: for example
because it was nacked, its lease or delay ended, it is no longer held, or its priority is higher.
`Transaction.transition` reports all of this, so it holds whatever a batch does.

All processes have the same heads, because each batch ships its changes (parts/part.py), in the order of the batches. A
process may not know the head of a queue, because it has just started or has forgotten it. Then it ships only the least
place at which its batch made a message ready; a process that knows a head whose frontier is not before that place
forgets the head. If the batch took messages away, all processes forget it. The next claim then begins at the first
entry, which makes a new head for all. A head that is shipped whole replaces any other one. A claim that does not find
what the head says forgets it, too.
"""

from collections.abc import Iterable, Sequence, Set
from heapq import nsmallest
from typing import Any, NamedTuple

from forq_trio.model import limits
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Place, ReadyRow, place_of

START: Place = (-(2**62), 0, 0)
"""The place before every message."""


class Head(NamedTuple):
    """The head of one queue."""

    frontier: Place
    ready: dict[int, Place]  # the places of the ready messages up to the frontier, by sequence


class HeadChange(NamedTuple):
    """The changes that a batch made to a head."""

    frontier: Place
    joined: Sequence[Place]
    left: Sequence[int]  # the sequence numbers of messages that are no longer in it
    whole: bool  # True: `joined` is the whole head


Shipped = tuple[dict[str, HeadChange | None], dict[str, Place]]


class Heads(Part):
    """The heads of queues."""

    shipped = Shipped

    def __init__(self) -> None:
        self.committed: dict[str, Head] = {}
        self.changed: dict[str, Head | None] = {}  # by this batch; None for a head that is forgotten
        self.least: dict[str, Place] = {}
        """For queues without a head: the least place that became ready, or START if a message is no longer ready."""
        self.ships_whole = False  # ship whole heads, for processes that do not know them

    def frontier(self, queue: str) -> Place:
        """The place after which a claim reads the index."""
        head = self._of(queue)
        return START if head is None else head.frontier

    def first(self, queue: str, most: int, but: Set[int]) -> list[int]:
        """The sequence numbers of the first messages of the head, except those in `but`."""
        head = self._of(queue)
        if head is None or not head.ready:
            return []
        places = [place for seq, place in head.ready.items() if seq not in but]
        return [place[2] for place in nsmallest(most, places)]

    def read(self, queue: str, rows: Sequence[ReadyRow]) -> None:
        """Note that a claim read these messages in order: the first ones of the head, then all up to the last one."""
        if not rows:
            return
        places = [place_of(row) for row in rows]
        head = self._own(queue) or Head(START, {})
        head.ready.update((place[2], place) for place in places)
        self.changed[queue] = Head(max(head.frontier, places[-1]), head.ready)

    def join(self, queue: str, places: Iterable[Place]) -> None:
        """Note that messages at these places became ready."""
        head = self._of(queue)
        if head is None:
            self.least[queue] = min([*places, *filter(None, [self.least.get(queue)])])
            return
        joining = [place for place in places if place <= head.frontier]
        if joining:
            self._known(queue).ready.update((place[2], place) for place in joining)

    def leave(self, queue: str, sequences: Iterable[int]) -> None:
        """Note that these messages are no longer ready, or no longer at their place."""
        head = self._of(queue)
        if head is None:
            self.least[queue] = START
            return
        for seq in sequences:
            if seq in head.ready:
                head = self._known(queue)
                del head.ready[seq]

    def forget(self, queue: str) -> None:
        """Forget a head, so that the next claim begins at the first entry."""
        if self._of(queue) is not None:
            self.changed[queue] = None

    def mistaken(self, queue: str) -> bool:
        """Forget a head that turned out to be wrong; False if there was none."""
        is_known = self._of(queue) is not None
        self.forget(queue)
        return is_known

    def copy(self) -> Any:
        changed = {
            queue: head and Head(head.frontier, head.ready.copy()) for queue, head in self.changed.items()
        }
        return changed, self.least.copy()

    def restore(self, copied: Any) -> None:
        self.changed, self.least = copied

    def adopt(self) -> None:
        for queue, head in self.changed.items():
            self.committed.pop(queue, None)
            if head is not None:
                self.committed[queue] = head
        while len(self.committed) > limits.HEADS_MAX:
            del self.committed[next(iter(self.committed))]
        self.discard()

    def discard(self) -> None:
        """Drop the changes of the batch. This is also done if the batch is not shipped, so that all processes agree."""
        if self.changed:
            self.changed = {}
        if self.least:
            self.least = {}

    # Between processes

    def ship(self) -> Shipped | None:
        """The changes of this batch, for other processes. A head that is too long is cut to its first half."""
        if not self.changed and not self.least:
            return None
        for queue, head in self.changed.items():
            if head is not None and len(head.ready) > limits.HEAD_MESSAGES_MAX:
                first = nsmallest(limits.HEAD_MESSAGES_MAX // 2, head.ready.values())
                self.changed[queue] = Head(first[-1], {place[2]: place for place in first})
        changes = {queue: head and self._change(queue, head) for queue, head in self.changed.items()}
        return changes, self.least

    def _change(self, queue: str, head: Head) -> HeadChange:
        known = None if self.ships_whole else self.committed.get(queue)
        if known is None:
            return HeadChange(head.frontier, list(head.ready.values()), (), whole=True)
        joined = [place for seq, place in head.ready.items() if known.ready.get(seq) != place]
        return HeadChange(head.frontier, joined, [*(known.ready.keys() - head.ready.keys())], whole=False)

    def take_over(self, shipped: Shipped) -> None:
        changes, least = shipped
        for queue, change in changes.items():
            if change is None or change.whole:
                self.changed[queue] = change and Head(
                    change.frontier, {place[2]: place for place in change.joined}
                )
            elif (head := self._own(queue)) is not None:
                for seq in change.left:
                    head.ready.pop(seq, None)
                head.ready.update((place[2], place) for place in change.joined)
                self.changed[queue] = Head(change.frontier, head.ready)
        for queue, place in least.items():
            if place <= self.frontier(queue):
                self.forget(queue)

    def _of(self, queue: str) -> Head | None:
        return self.changed[queue] if queue in self.changed else self.committed.get(queue)

    def _own(self, queue: str) -> Head | None:
        """The head, to be changed by this batch."""
        if queue not in self.changed:
            head = self.committed.get(queue)
            if head is None:
                return None
            self.changed[queue] = Head(head.frontier, head.ready.copy())
        return self.changed[queue]

    def _known(self, queue: str) -> Head:
        head = self._own(queue)
        assert head is not None
        return head
