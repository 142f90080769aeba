"""The head of a queue: its ready messages up to the place from which claims read the index on.

PostgreSQL keeps what is gone in an index while any transaction of the cluster may still see it. A claim that began at
the first entry would walk past every message that was ever claimed. So claims begin at the frontier of the queue, a
place in the claim order that moves as they read:

    every ready message up to the frontier is in the head; the index has those behind it.

A claim takes the first messages of the head, and then reads behind the frontier; what it reads joins the head, and
what it leases leaves it. A message that becomes ready joins the head if its place is not behind the frontier: one that
was nacked, whose lease or delay ended, that is no longer held, or of a higher priority. `Transaction.transition` says
all of this, so it holds whatever a batch does.

Several processes agree, because each batch ships what it changed (parts/part.py), in the order of the
batches. A process may not know the head of a queue: it was started, or forgot it. What its batch makes ready it tells
by the least place, and who knows a head whose frontier is not before that place forgets it; so does everybody if it
took messages away. Then the next claim begins at the first entry, which makes a new head, for all. A head that is
shipped whole replaces any other one. A claim that does not find what the head says forgets it, too.
"""

from collections.abc import Iterable, Sequence, Set
from heapq import nsmallest
from typing import Any, NamedTuple

from forq_trio.model import limits
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Place, ReadyRow, place_of

START: Place = (-(2**62), 0, 0)
"""Before every message."""


class Head(NamedTuple):
    """The head of one queue."""

    frontier: Place
    ready: dict[int, Place]  # the places of the ready messages up to the frontier, by sequence


class HeadChange(NamedTuple):
    """What a batch made of a head."""

    frontier: Place
    joined: Sequence[Place]
    left: Sequence[int]  # the sequences of those that are no longer in it
    whole: bool  # `joined` is all of it


Shipped = tuple[dict[str, HeadChange | None], dict[str, Place]]


class Heads(Part):
    """The heads of queues."""

    shipped = Shipped

    def __init__(self) -> None:
        self.committed: dict[str, Head] = {}
        self.changed: dict[str, Head | None] = {}  # by this batch; None for a head that is forgotten
        self.least: dict[str, Place] = {}
        """Of queues without a head, the least place that became ready, or START if a message is no longer ready."""
        self.ships_whole = False  # what is shipped are whole heads, for processes that do not know them

    def frontier(self, queue: str) -> Place:
        """Where a claim reads on."""
        head = self._of(queue)
        return START if head is None else head.frontier

    def first(self, queue: str, most: int, but: Set[int]) -> list[int]:
        """The first messages of the head, by sequence, without these."""
        head = self._of(queue)
        if head is None or not head.ready:
            return []
        places = [place for seq, place in head.ready.items() if seq not in but]
        return [place[2] for place in nsmallest(most, places)]

    def read(self, queue: str, rows: Sequence[ReadyRow]) -> None:
        """A claim read these messages, in their order: the first ones of the head, and all up to the last one."""
        if not rows:
            return
        places = [place_of(row) for row in rows]
        head = self._own(queue) or Head(START, {})
        head.ready.update((place[2], place) for place in places)
        self.changed[queue] = Head(max(head.frontier, places[-1]), head.ready)

    def join(self, queue: str, places: Iterable[Place]) -> None:
        """Messages at these places became ready."""
        head = self._of(queue)
        if head is None:
            self.least[queue] = min([*places, *filter(None, [self.least.get(queue)])])
            return
        joining = [place for place in places if place <= head.frontier]
        if joining:
            self._known(queue).ready.update((place[2], place) for place in joining)

    def leave(self, queue: str, sequences: Iterable[int]) -> None:
        """These messages are no longer ready, or no longer at their place."""
        head = self._of(queue)
        if head is None:
            self.least[queue] = START
            return
        for seq in sequences:
            if seq in head.ready:
                head = self._known(queue)
                del head.ready[seq]

    def forget(self, queue: str) -> None:
        """The next claim begins at the first entry."""
        if self._of(queue) is not None:
            self.changed[queue] = None

    def mistaken(self, queue: str) -> bool:
        """The head is not as it says; False if no head is known."""
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
        """Also where nobody is told of the batch: this process forgets what it changed, too."""
        if self.changed:
            self.changed = {}
        if self.least:
            self.least = {}

    # Between processes

    def ship(self) -> Shipped | None:
        """What this batch changed, for the other processes. A head that is too long ends with its first half."""
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
