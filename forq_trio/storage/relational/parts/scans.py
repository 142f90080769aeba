"""How far the claims by attributes have read: as of the last commit, and with the changes of the batch."""

from typing import Any, NamedTuple

from forq_trio.model import limits
from forq_trio.model.messages.where import Where
from forq_trio.storage.relational.parts.part import Part

ScanPlace = tuple[int, int, int]
"""Priority, position and sequence number of a message. Unlike in `row.Place`, the priority is not negated."""
Scanned = dict[str, dict[Where, "Scan"]]
"""The scans by queue and conditions."""


class Scan(NamedTuple):
    """How far claims with the same conditions have read.

    A dirty scan begins again: at once, or, if its step was cut short, only after it has reached the end of the queue.
    So every scan reaches the end.
    """

    place: ScanPlace | None = None  # nothing up to it matches; None before the first
    cut: bool = False  # its step was used up before the end of the queue
    dirty: bool = False  # messages became ready that may come before `place`


Shipped = list[tuple[str, list[tuple[Where, Scan]]]]


class Scans(Part):
    """How far the claims by attributes of each queue have read."""

    shipped = Shipped

    def __init__(self) -> None:
        self._committed: Scanned = {}
        self._changed: Scanned = {}
        self.cut: set[str] = set()  # queues whose claims continue in the next batch

    def of(self, queue: str, where: Where) -> Scan:
        return self._of_queue(queue).get(where, Scan())

    def put(self, queue: str, where: Where, scan: Scan) -> None:
        of_queue = self._own(queue)
        of_queue.pop(where, None)
        of_queue[where] = scan
        if len(of_queue) > limits.RECEIVERS_OFFERED_MAX:
            del of_queue[next(iter(of_queue))]

    def stir(self, queue: str, priority: int | None = None) -> None:
        """Note that messages became ready. priority: their highest, if they are the last in it; None: anywhere."""
        if not self._committed and not self._changed:
            return
        known = self._of_queue(queue)
        behind = [
            where
            for where, scan in known.items()
            if not scan.dirty and scan.place is not None and (priority is None or priority > scan.place[0])
        ]
        for where in behind:
            self._own(queue)[where] = self._of_queue(queue)[where]._replace(dirty=True)

    def forget(self, queue: str) -> None:
        """Forget the scans of a queue, because its order may have changed."""
        if self._of_queue(queue):
            self._changed[queue] = {}

    def copy(self) -> Any:
        return {queue: scans.copy() for queue, scans in self._changed.items()}, self.cut.copy()

    def restore(self, copied: Any) -> None:
        self._changed, self.cut = copied

    def adopt(self) -> None:
        if self._changed:
            for queue, scans in self._changed.items():
                self._committed.pop(queue, None)
                if scans:
                    self._committed[queue] = scans
            total = sum(map(len, self._committed.values()))
            while total > limits.CLAIM_SCANS_MAX:
                total -= len(self._committed.pop(next(iter(self._committed))))
        self.discard()

    def discard(self) -> None:
        if self._changed:
            self._changed = {}
        if self.cut:
            self.cut = set()

    def ship(self) -> Shipped | None:
        return [(queue, list(scans.items())) for queue, scans in self._changed.items()] or None

    def take_over(self, shipped: Shipped) -> None:
        self._changed = {queue: dict(scans) for queue, scans in shipped}

    def _of_queue(self, queue: str) -> dict[Where, Scan]:
        changed = self._changed.get(queue)
        return self._committed.get(queue, {}) if changed is None else changed

    def _own(self, queue: str) -> dict[Where, Scan]:
        if queue not in self._changed:
            self._changed[queue] = dict(self._committed.get(queue, {}))
        return self._changed[queue]
